#pragma once

#include <string>
#include <vector>

#include "lathe/core/graph.h"

namespace lathe::compress {

/// A parameter that can be pruned: the weight of layers, or a table that rows are looked up in.
struct PrunableWeight {
  std::string state;
  std::vector<NodeId> readers;  ///< layers that multiply with it, lookups; in topological order
  /// Its matrix, [outputs, inputs] or [rows, features], and the axis that makes it that
  /// (ops/channel_matrix.h).
  std::int64_t rows = 0, columns = 0, axis = -1;
  bool is_table = false;  ///< rows are looked up in it, whoever else multiplies with it
};

/// Every weight of a layer and every table, once however many read it, in the order of their first
/// readers. Masks and quantizers between the parameter and its reader count for nothing. A weight
/// that is computed in another way, packed codes and the matrices of LoRA's paths are none: a mask
/// of the weight covers its path too.
std::vector<PrunableWeight> find_prunable(const Graph& graph);

}  // namespace lathe::compress
