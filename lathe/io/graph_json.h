#pragma once

#include <string>
#include <string_view>

#include "lathe/core/graph.h"

namespace lathe::io {

/// The graph as one JSON object, for programs in other languages: the same facts as the text form,
/// node by node. `parse_graph_json` reads it back to an equal graph.
std::string to_json(const Graph& graph);
Graph parse_graph_json(std::string_view text, std::string_view name);

}  // namespace lathe::io
