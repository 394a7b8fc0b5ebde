#include "lathe/ops/broadcast.h"

#include <algorithm>

#include "lathe/core/error.h"
#include "lathe/ops/axes.h"

namespace lathe::ops {

Shape broadcast_shapes(std::string_view verb, const Shape& left, const Shape& right, const Type& a,
                       const Type& b) {
  const std::size_t rank = std::max(left.size(), right.size());
  const Size one(1);
  Shape result(rank);
  for (std::size_t i = 0; i < rank; ++i) {  // i counts from the last axis
    const Size& x = i < left.size() ? left[left.size() - 1 - i] : one;
    const Size& y = i < right.size() ? right[right.size() - 1 - i] : one;
    if (x != y && x != one && y != one)
      fail("cannot {} {} and {}: sizes {} and {} differ", verb, to_text(a), to_text(b), x.text(),
           y.text());
    result[rank - 1 - i] = x == one ? y : x;
  }
  return result;
}

Shape broadcast_shapes(std::string_view verb, const Type& a, const Type& b) {
  return broadcast_shapes(verb, a.shape, b.shape, a, b);
}

std::vector<std::int64_t> broadcast_indices(std::span<const std::int64_t> from,
                                            std::span<const std::int64_t> to) {
  check(from.size() <= to.size(), "a broadcast to no fewer axes");
  const std::vector<std::int64_t> own = row_major_strides(from);
  std::vector<std::int64_t> strides(to.size(), 0);  // a stretched axis is not walked
  const std::size_t missing = to.size() - from.size();
  for (std::size_t axis = 0; axis < from.size(); ++axis)
    if (from[axis] != 1) strides[axis + missing] = own[axis];
  return strided_indices(to, strides);
}

}  // namespace lathe::ops
