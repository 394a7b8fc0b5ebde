#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lathe/core/pattern.h"
#include "lathe/engine/backend.h"

namespace lathe::engine {

/// Adds a lowered node in front of the matched root and notes what it came from; nothing where the
/// backend cannot run it (a weight that is no state, ids of 64 bits), because a lowered op has no
/// reference kernel to fall back on.
std::optional<Value> add_lowered(Graph& graph, const Backend& backend, const Match& match,
                                 std::string op, std::vector<Value> inputs, Attributes attributes);

/// Lets `to`, which computes what a node of the user's graph does, have all of that node's readers,
/// and erases it.
void replace_by_lowered(Graph& graph, NodeId from, NodeId to);

}  // namespace lathe::engine
