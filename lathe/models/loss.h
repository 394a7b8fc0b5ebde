#pragma once

#include "lathe/core/graph.h"

namespace lathe::models {

/// The input that a loss compares a graph's logits with.
inline constexpr const char* kLabelsInput = "labels";

/// Adds the input `labels` and the output `loss` to a graph that gives `logits`: the squared error
/// where each row has one number, else the cross entropy of a label for each row of logits. A loss
/// is a sum and a count, which the graph divides once, at the end.
void attach_loss(Graph& graph);

/// Takes away the input `labels`, every output that depends on it and what only those needed.
void detach_loss(Graph& graph);

}  // namespace lathe::models
