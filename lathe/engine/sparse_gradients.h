#pragma once

#include "lathe/core/graph.h"
#include "lathe/engine/backend.h"

namespace lathe::engine {

/// Keeps the gradient of an embedding table as the rows that the batch used, where nobody but the
/// gradient's norm and the optimizer reads it; adds those rows onto a dense gradient, where it is
/// one term of a sum (tied weights, accumulated steps). The optimizer still moves every row, as
/// decay and moments ask.
///
/// Lowered ops: `embedding_gradient_rows`, `sum_squares_of_rows`, `adamw_of_rows`, `sgd_of_rows`,
/// `add_embedding_gradient`. Returns how many gradients changed.
int make_embedding_gradients_sparse(Graph& graph, const Backend& backend);

}  // namespace lathe::engine
