#pragma once

#include "lathe/core/graph.h"

namespace lathe::compress {

/// Makes an integer graph of a quantized one: docs/integer.md. Inputs and outputs keep their names
/// and types; losses, outputs that are single numbers, go. Fails in one line that names every place
/// that would stay float, and leaves both as they were.
void lower_to_integer(Graph& graph, State& state);

/// Whether a graph is what `lower_to_integer` makes.
bool is_integer(const Graph& graph);

}  // namespace lathe::compress
