#pragma once

#include <optional>

#include "lathe/compress/integer/integer_lowering.h"

namespace lathe::compress {

/// The attributes `exponent_multiplier` and `exponent_shift` of scores whose step is worth `scale`
/// and that lie at most `distance` apart. Refuses the node and gives nothing where 63 bits will not
/// do.
std::optional<Attributes> exponent_attributes(IntegerLowering& lowering, NodeId node, double scale,
                                              numerics::Integer128 distance);

}  // namespace lathe::compress
