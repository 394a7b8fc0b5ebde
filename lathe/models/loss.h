#pragma once

#include <optional>

#include "lathe/core/graph.h"
#include "lathe/core/label_kind.h"

namespace lathe::models {

/// The input that a loss compares a graph's logits with.
inline constexpr const char* kLabelsInput = "labels";

/// Adds the input `labels` and the output `loss` to a graph that gives `logits`: the cross entropy
/// of a label for each row of logits, the squared error of numbers (also where a row has one number
/// alone), or for sets of labels the cross entropy of every logit's sigmoid. A loss is a sum and a
/// count, which the graph divides once, at the end.
void attach_loss(Graph& graph, LabelKind labels = LabelKind::Class);

/// What kind of labels a graph's loss compares its logits with; nothing without a loss.
std::optional<LabelKind> loss_kind(const Graph& graph);

/// Takes away the input `labels`, every output that depends on it and what only those needed.
void detach_loss(Graph& graph);

}  // namespace lathe::models
