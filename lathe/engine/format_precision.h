#pragma once

#include "lathe/core/graph.h"
#include "lathe/core/number_format.h"
#include "lathe/engine/precision.h"

namespace lathe::engine {

/// Bits that the numbers of a format need from their first to their last that is not zero, apart
/// from their scale.
int significant_bits(const NumberFormat& format);

/// Fails unless its numbers keep their bits in products of that precision.
void check_format(const NumberFormat& format, Precision precision);

/// Fails naming the first node whose numbers would lose bits: products in bfloat16 see eight.
void check_formats(const Graph& graph, Precision precision);

}  // namespace lathe::engine
