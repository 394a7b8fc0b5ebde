#pragma once

#include <string>
#include <vector>

#include "lathe/core/graph.h"

namespace lathe::engine {

/// The nodes of the user's graph that a lowered node computes.
struct Origin {
  static constexpr const char* kAnnotation = "origin";
  std::vector<std::string> nodes;
};
std::string to_text(const Origin& origin);

/// The lowered copy of a graph for the CPU: equal expressions joined, activations and residual
/// additions inside the linears, sums of embeddings gathered at once. A graph that updates no state
/// is run for its outputs alone, so its dropout goes too.
///
/// Lowered ops exist only here: `fused_linear`, `fused_layer_norm`, `embedding_sum`, and those of
/// sparse_gradients.h.
Graph lower(const Graph& graph);

}  // namespace lathe::engine
