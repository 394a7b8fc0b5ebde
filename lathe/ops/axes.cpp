#include "lathe/ops/axes.h"

#include "lathe/core/tensor.h"

namespace lathe::ops {

std::size_t axis_position(std::string_view op, std::int64_t axis, const Type& type) {
  const auto rank = static_cast<std::int64_t>(type.rank());
  if (axis < -rank || axis >= rank) fail("{}: {} has no axis {}", op, to_text(type), axis);
  return static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
}

std::size_t axis_position(std::int64_t axis, std::size_t rank) {
  const std::int64_t position = axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis;
  check(position >= 0 && static_cast<std::size_t>(position) < rank, "an axis of the tensor");
  return static_cast<std::size_t>(position);
}

std::vector<bool> reduced_axes(std::span<const std::int64_t> axes, std::size_t rank) {
  std::vector<bool> result(rank, axes.empty());
  for (const std::int64_t axis : axes) result[axis_position(axis, rank)] = true;
  return result;
}

AxisSplit split_around(std::span<const std::int64_t> dims, std::size_t axis) {
  return {num_elements(dims.first(axis)), dims[axis], num_elements(dims.subspan(axis + 1))};
}

std::vector<std::int64_t> row_major_strides(std::span<const std::int64_t> dims) {
  std::vector<std::int64_t> strides(dims.size(), 1);
  for (std::size_t axis = dims.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * dims[axis];
  return strides;
}

std::vector<std::int64_t> strided_indices(std::span<const std::int64_t> dims,
                                          std::span<const std::int64_t> strides,
                                          std::int64_t offset) {
  check(dims.size() == strides.size(), "a stride for each axis");
  std::vector<std::int64_t> indices(static_cast<std::size_t>(num_elements(dims)));
  std::vector<std::int64_t> counter(dims.size(), 0);
  std::int64_t position = offset;
  for (std::int64_t& index : indices) {
    index = position;
    // Count up like an odometer, the last axis fastest.
    for (std::size_t axis = dims.size(); axis-- > 0;) {
      position += strides[axis];
      if (++counter[axis] < dims[axis]) break;
      position -= strides[axis] * dims[axis];
      counter[axis] = 0;
    }
  }
  return indices;
}

}  // namespace lathe::ops
