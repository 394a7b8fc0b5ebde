#pragma once

#include "lathe/core/graph.h"

namespace lathe::compress {

/// Rounds the biases of a quantized graph to the steps of the sums that they are added to, which is
/// what `lower_to_integer` does: the quantized graph then computes with the biases that integers
/// have. Gives how many were rounded. Biases of layers with a batch norm behind them stay: those
/// are not added to the sum alone.
int align_biases(const Graph& graph, State& state);

}  // namespace lathe::compress
