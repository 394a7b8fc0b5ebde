#include "lathe/ops/slice_range.h"

#include <limits>

#include "lathe/core/error.h"
#include "lathe/ops/axes.h"
#include "lathe/ops/elements.h"

namespace lathe::ops {
namespace {

constexpr std::int64_t kToTheEnd = std::numeric_limits<std::int64_t>::max();

Size from_front(std::int64_t index, const Size& size) {
  if (index == kToTheEnd) return size;
  return index < 0 ? size + Size(index) : Size(index);
}

}  // namespace

std::vector<AttributeSpec> slice_attributes() {
  return {{.name = "axis", .default_value = 0, .summary = "the axis", .required = true},
          {.name = "begin",
           .default_value = 0,
           .summary = "the first index; negative ones count from the end"},
          {.name = "end",
           .default_value = kToTheEnd,
           .summary = "the index after the last; negative ones count from the end"}};
}

SliceRange slice_range(const AttributeReader& attributes, const Size& size) {
  return {from_front(attributes.integer("begin"), size),
          from_front(attributes.integer("end"), size)};
}

std::vector<std::int64_t> slice_places(std::string_view op, const AttributeReader& attributes,
                                       const Tensor& whole, const Tensor& slice) {
  const std::size_t axis = axis_position(attributes.integer("axis"), whole.rank());
  std::int64_t begin = attributes.integer("begin");
  if (begin < 0) begin += whole.dim(axis);
  if (begin < 0 || begin + slice.dim(axis) > whole.dim(axis))
    fail("{} from {} to {} is outside axis {}, which has size {}", op, begin,
         begin + slice.dim(axis), axis, whole.dim(axis));
  const std::vector<std::int64_t> strides = row_major_strides(whole.dims());
  return strided_indices(slice.dims(), strides, begin * strides[axis]);
}

}  // namespace lathe::ops
