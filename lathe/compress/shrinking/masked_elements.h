#pragma once

#include <vector>

#include "lathe/core/graph.h"
#include "lathe/core/tensor.h"

namespace lathe::compress {

/// Which elements of a parameter are zero because of a mask, whatever the states beside it learn:
/// true there, in the parameter's own order. `value` is the parameter's.
std::vector<bool> masked_elements(const Graph& graph, const State& state, Value parameter,
                                  const Tensor& value);

}  // namespace lathe::compress
