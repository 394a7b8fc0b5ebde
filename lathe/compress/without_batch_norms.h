#pragma once

#include "lathe/core/graph.h"
#include "lathe/io/model.h"

namespace lathe::compress {

/// Makes batch norms part of the convolutions and linear layers before them, in graph and values:
/// the layers' weights and biases become those that `fold-batch-norm` computes, and the norms'
/// states go. Returns how many. What is rounded from then on is what inference multiplies with.
int fold_batch_norms(Graph& graph, State& state);

/// Gives a model whose norms are folded those that its family builds, so that other programs can
/// read it: each adds the bias of the layer before it and changes nothing else. Returns how many.
int restore_batch_norms(io::Model& model);

}  // namespace lathe::compress
