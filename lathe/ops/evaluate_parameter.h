#pragma once

#include "lathe/core/graph.h"
#include "lathe/core/tensor.h"

namespace lathe::ops {

/// The value of a parameter: of a state itself, or of what the graph computes from states and
/// constants alone (`mul(w, mask)`, `decode(codes, scale)`), by the reference kernels. Fails naming
/// the node that needs something else, or the state without a value.
Tensor evaluate_parameter(const Graph& graph, const State& state, Value value);

}  // namespace lathe::ops
