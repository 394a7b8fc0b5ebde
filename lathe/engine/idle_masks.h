#pragma once

#include <set>
#include <string>

#include "lathe/core/graph.h"

namespace lathe::engine {

/// Lets linears read packed weights that were masked before they were rounded: mul(decode(codes),
/// mask) -> decode(codes), where the mask is 0 and 1 and every number that it hides is 0 already.
/// Gives the names of the states that this was seen in, which must stay as they are.
std::set<std::string> remove_idle_masks(Graph& graph, const State& state);

}  // namespace lathe::engine
