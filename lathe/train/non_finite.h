#pragma once

#include <string>

#include "lathe/core/graph.h"
#include "lathe/core/pass.h"

namespace lathe::train {

/// Whether every element is finite, as integers always are.
bool is_finite(const Tensor& tensor);

/// Says where a step first computed a number that is not finite, by computing it again node by node
/// with the reference kernels: `first in node "x" (exp), made of finite numbers`.
std::string explain_non_finite(const Graph& graph, const State& state, const Feed& inputs);

}  // namespace lathe::train
