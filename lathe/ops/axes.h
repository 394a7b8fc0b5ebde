#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "lathe/core/type.h"

/// How ops count axes and walk along them.
namespace lathe::ops {

/// The position of an axis that may count from the end; fails naming the op when there is none.
std::size_t axis_position(std::string_view op, std::int64_t axis, const Type& type);
/// The same for a concrete rank whose axis was checked before.
std::size_t axis_position(std::int64_t axis, std::size_t rank);

/// For each axis of an array, whether it is among `axes`; all are where `axes` is empty.
std::vector<bool> reduced_axes(std::span<const std::int64_t> axes, std::size_t rank);

/// A row-major array seen around one axis: element (o, i, n) is at (o * size + i) * inner + n.
struct AxisSplit {
  std::int64_t outer = 1;
  std::int64_t size = 1;
  std::int64_t inner = 1;
};
AxisSplit split_around(std::span<const std::int64_t> dims, std::size_t axis);

std::vector<std::int64_t> row_major_strides(std::span<const std::int64_t> dims);
/// `offset` plus the dot product of index and strides, for every index of `dims` in row-major
/// order.
std::vector<std::int64_t> strided_indices(std::span<const std::int64_t> dims,
                                          std::span<const std::int64_t> strides,
                                          std::int64_t offset = 0);

}  // namespace lathe::ops
