#pragma once

#include "lathe/core/graph.h"

namespace lathe::engine {

/// Whether anybody reads a value that is bound to a state: an op, an output or another state.
/// Otherwise it may lie where the state lies.
bool is_read_besides_its_state(const Graph& graph, const Value& value);

/// Whether runs of the graph change a state that weights are made of: any but a cache.
bool changes_parameters(const Graph& graph);

}  // namespace lathe::engine
