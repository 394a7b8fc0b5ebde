#pragma once

#include "lathe/core/graph.h"

namespace lathe::compress {

/// Makes a layer read its input, and a LoRA path beside it too, with the smallest magnitudes of
/// each row set to 0. Layers that read the same value with the same share read the same node; a
/// share that was there before gives way to the new one.
void insert_value_pruning(Graph& graph, NodeId layer, double share);

}  // namespace lathe::compress
