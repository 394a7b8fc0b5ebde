#pragma once

#include "lathe/core/graph.h"
#include "lathe/engine/backend.h"

namespace lathe::engine {

/// Leaves out of a graph that changes no parameter, but perhaps caches, what only training needs,
/// and rows that nobody reads.
void prepare_inference(Graph& graph);

/// The lowered copy of a graph for a backend: equal expressions joined, and fused whatever the
/// backend can run fused (fusions.h, sparse_gradients.h,
/// attention_statistics.h). A graph that changes no parameter is run for
/// its outputs alone, so its dropout goes too.
///
/// Lowered ops (lowered_ops.cpp) exist only here and have no reference kernel: each one is there
/// because the backend says that it can run it.
Graph lower(const Graph& graph, const Backend& backend);

}  // namespace lathe::engine
