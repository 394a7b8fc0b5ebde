#pragma once

#include "lathe/core/graph.h"

namespace lathe::engine {

/// Whether a value is a product's result, which is rounded to bfloat16 already where products are
/// in that precision.
bool is_bf16_result(const Graph& graph, Value value);

}  // namespace lathe::engine
