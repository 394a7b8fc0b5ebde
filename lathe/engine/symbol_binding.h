#pragma once

#include "lathe/core/graph.h"
#include "lathe/core/pass.h"

namespace lathe::engine {

/// Finds the value of every symbol from the shapes of the inputs given, and checks that every input
/// of the graph is there with the dtype and shape it declares.
SymbolValues bind_symbols(const Graph& graph, const Feed& feed);

/// Checks that every state of the graph has a value of its declared type; fails naming the first
/// that is missing or of another shape.
void check_state(const Graph& graph, const State& state);

/// Checks values that some states are to take: each must be a state's, of its declared type.
void check_new_state(const Graph& graph, const State& values);

}  // namespace lathe::engine
