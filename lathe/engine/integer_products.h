#pragma once

#include <set>

#include "lathe/core/graph.h"

namespace lathe::engine {

/// Makes every linear of rounded numbers and packed weights a product of whole numbers:
/// linear(quantize(x), decode(codes), b) -> code_linear(encode(x), codes, b), where both formats
/// have row codes (ops/code_products.h); and conv2d(quantize(x), decode(codes), b) ->
/// code_conv2d(x, codes, b) where x has one scale and a filter has one; and
/// attention(quantize(q), quantize(k), quantize(v)) -> code_attention(encode(q), ...) where rows
/// have one scale and no zero point (ops/code_attention.h). Returns how many. A quantizer or a
/// decode that nobody reads any more is left to remove-dead-nodes.
int use_integer_products(Graph& graph);

/// The packed weights that floats are computed with and that stay packed: tables that only
/// lookups read, and weights that only linears read, in formats whose numbers fit signed bytes.
std::set<NodeId> find_kept_weights(const Graph& graph);

/// The graph that an executor runs that is asked to multiply whole numbers.
Graph with_integer_products(const Graph& graph);

}  // namespace lathe::engine
