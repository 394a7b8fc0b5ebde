#pragma once

#include <set>

#include "lathe/engine/backend.h"

namespace lathe::engine {

/// The decodes that a backend may leave packed: it has a kernel for them, and linears and lookups
/// alone read them.
std::set<NodeId> find_packed_weights(const Graph& graph, const Backend& backend);

// As the fusions of fusions.h.

/// embedding(ids, decode(codes)) -> packed_embedding.
void fuse_packed_tables(Graph& graph, const Backend& backend);
/// linear(x, decode(codes), b) and fused_linear -> packed_linear. Where x was rounded to the same
/// MXINT8 as the weight, the products are those of whole numbers.
void fuse_packed_linears(Graph& graph, const Backend& backend);

}  // namespace lathe::engine
