#pragma once

#include "lathe/core/graph.h"
#include "lathe/core/tensor.h"

namespace lathe::compress {

/// Takes away the masks that take nothing out, and states that nobody reads any more. A mask that a
/// path of low rank shares stays: it tells that the path is one.
void drop_full_masks(Graph& graph, State& state);

}  // namespace lathe::compress
