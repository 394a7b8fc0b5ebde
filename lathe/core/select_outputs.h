#pragma once

#include <string>
#include <vector>

#include "lathe/core/graph.h"

namespace lathe {

/// The part of a graph that the named outputs depend on: other outputs, state updates, and the
/// nodes and inputs only they needed, are gone. Fails when an output does not exist.
Graph select_outputs(Graph graph, const std::vector<std::string>& names);

}  // namespace lathe
