#pragma once

#include <string>

#include "lathe/core/graph.h"

namespace lathe::io::onnx {

/// Whether a graph computes each row of what is fed from that row alone, `symbol` being how many
/// there are: no sum, maximum, window or choice reaches from one to another. What it cannot tell it
/// denies.
bool keeps_rows_apart(const Graph& graph, const std::string& symbol);

}  // namespace lathe::io::onnx
