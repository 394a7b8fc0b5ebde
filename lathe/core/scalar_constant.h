#pragma once

#include <string>

#include "lathe/core/graph.h"

namespace lathe {

/// Adds a constant of one number, in front of node `before` where one is given.
Value add_scalar_constant(Graph& graph, std::string name, double value, NodeId before = {});

}  // namespace lathe
