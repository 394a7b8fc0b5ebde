#pragma once

#include <span>
#include <vector>

#include "lathe/core/graph.h"

namespace lathe {

/// Adds to the graph the gradients of a scalar with respect to `targets`, by walking back from it.
///
/// Returns one value for each target, none where the scalar does not depend on it. Every op on the
/// way must be differentiable; one that is not fails by node name. Gradients that several readers
/// contribute are added in the order of the readers, so the same graph gives the same sums.
std::vector<Value> differentiate(Graph& graph, Value scalar, std::span<const Value> targets);

}  // namespace lathe
