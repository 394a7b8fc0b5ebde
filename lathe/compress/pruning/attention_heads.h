#pragma once

#include "lathe/compress/pruning/granules.h"

namespace lathe::compress {

/// A unit for each attention whose queries, keys and values are outputs of layers and whose result
/// layers alone read. A granule is a head: its rows in the layers before, with their biases, and
/// its columns in those behind. Query heads that share a key head make one granule.
std::vector<PruningUnit> find_head_units(const Graph& graph);

}  // namespace lathe::compress
