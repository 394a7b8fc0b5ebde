#pragma once

#include <cstdint>

#include "lathe/core/graph.h"

namespace lathe::models {

/// Fresh values for every state of the graph, as the states' own attributes say (`init`, `scale`).
///
/// A value depends on the seed, the state's name and the element's index alone, so two graphs that
/// share a state name start it alike, whatever else they hold.
State initialize(const Graph& graph, std::uint64_t seed);

/// The value of one state.
Tensor initialize_state(const Graph& graph, NodeId state, std::uint64_t seed);

}  // namespace lathe::models
