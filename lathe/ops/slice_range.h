#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lathe/core/op.h"

/// What slice and its gradient share: a run of indices of one axis.
namespace lathe::ops {

/// Axis, begin and end.
std::vector<AttributeSpec> slice_attributes();

/// The first index and the one after the last, of an axis of that size.
struct SliceRange {
  Size begin, end;
};
SliceRange slice_range(const AttributeReader& attributes, const Size& size);

/// Where the elements of the slice lie in what it is taken from; fails, naming the op, where they
/// are outside.
std::vector<std::int64_t> slice_places(std::string_view op, const AttributeReader& attributes,
                                       const Tensor& whole, const Tensor& slice);

}  // namespace lathe::ops
