#pragma once

#include "lathe/core/graph.h"

namespace lathe::compress {

/// Makes batch norms part of the convolutions and linear layers before them, in graph and values:
/// the layers' weights and biases become those that `fold-batch-norm` computes, and the norms'
/// states go. Returns how many. What is rounded from then on is what inference multiplies with.
int fold_batch_norms(Graph& graph, State& state);

}  // namespace lathe::compress
