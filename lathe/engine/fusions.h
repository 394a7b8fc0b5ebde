#pragma once

#include <optional>
#include <string>

#include "lathe/core/graph.h"
#include "lathe/engine/backend.h"

namespace lathe::engine {

/// What a fused op calls a function of each element: the op, and which approximation where it has
/// several. None where the op says more than that.
std::optional<std::string> activation_name(const Graph& graph, NodeId id);

// Each replaces several nodes by one lowered node where the backend can run that and nobody else
// reads what lies between; what nobody reads any more is left to remove-dead-nodes.

/// relu(linear(x, w, b)) and its like -> fused_linear; of code_linear -> fused_code_linear.
void fuse_activations(Graph& graph, const Backend& backend);
/// linear(x, w, b) + r, with an activation between or not -> fused_linear.
void fuse_residuals(Graph& graph, const Backend& backend);
/// layer_norm(x + r) -> fused_layer_norm.
void fuse_layer_norms(Graph& graph, const Backend& backend);
/// The sum of two or three embeddings -> embedding_sum.
void fuse_embeddings(Graph& graph, const Backend& backend);

}  // namespace lathe::engine
