#pragma once

#include <optional>
#include <string>

#include "lathe/core/graph.h"

namespace lathe {

/// Says in a few words where two graphs first differ, `a` being what is there and `b` what was
/// expected: a node that only one has, else a node whose line differs, else another output. Nullopt
/// when they are the same; the order in which nodes are written does not count.
std::optional<std::string> describe_difference(const Graph& a, const Graph& b);

}  // namespace lathe
