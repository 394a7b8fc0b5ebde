#pragma once

#include <string>
#include <vector>

#include "lathe/compress/pruning/granules.h"
#include "lathe/core/tensor.h"

namespace lathe::compress {

/// How much of a unit is pruned.
struct UnitReport {
  std::string unit;
  std::vector<std::int64_t> shape;  ///< of its weight; empty where it has several
  std::string granularity;
  std::string method;
  std::int64_t granules = 0, pruned = 0;
  std::int64_t elements = 0, zeros = 0;  ///< of all its parts
};
/// Counts by the masks of the states.
UnitReport report_unit(const PruningUnit& unit, const State& masks);

/// A mask of a model and the parameter that it covers.
struct MaskReport {
  std::string parameter;
  std::vector<std::int64_t> shape;
  std::int64_t elements = 0, zeros = 0;
};
/// Every mask, of parameters and of packed ones, in topological order.
std::vector<MaskReport> report_masks(const Graph& graph, const State& state);

}  // namespace lathe::compress
