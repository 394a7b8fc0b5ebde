#pragma once

#include "lathe/core/graph.h"
#include "lathe/engine/backend.h"

namespace lathe::engine {

/// Lets the gradient of an attention read what the forward pass has found, its result and two
/// numbers for each query and head, rather than find it again; where both are in the graph and the
/// backend can run them so.
///
/// Lowered ops: `attention_with_statistics`, `attention_gradient_with_statistics`. Returns how many
/// gradients changed.
int share_attention_statistics(Graph& graph, const Backend& backend);

}  // namespace lathe::engine
