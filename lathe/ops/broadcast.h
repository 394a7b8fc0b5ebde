#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "lathe/core/type.h"

/// Broadcasting as in numpy: shapes are aligned at their last axes, and a size of 1 stretches.
namespace lathe::ops {

/// The common shape of two operands. Sizes must be equal for every value of their symbols, or one
/// of them the constant 1; fails with "cannot VERB a and b: sizes 3 and 4 differ".
Shape broadcast_shapes(std::string_view verb, const Type& a, const Type& b);
/// The same for parts of shapes, such as the leading axes of a matrix product; `a` and `b` are only
/// for the message.
Shape broadcast_shapes(std::string_view verb, const Shape& left, const Shape& right, const Type& a,
                       const Type& b);

/// For every element of the shape `to`, in row-major order, the index of the element of `from` it
/// reads.
std::vector<std::int64_t> broadcast_indices(std::span<const std::int64_t> from,
                                            std::span<const std::int64_t> to);

}  // namespace lathe::ops
