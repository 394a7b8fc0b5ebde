#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lathe/core/tensor.h"

/// How ops that gather and scatter single elements or parts by tuples of indices find them.
namespace lathe::ops {

/// For each element of `indices`, the element of an array of shape `dims` at the same place, but at
/// that index along `axis`. Indices below zero count from the end; fails on one outside.
std::vector<std::int64_t> elements_along(std::span<const std::int64_t> dims, const Tensor& indices,
                                         std::size_t axis);

/// Parts of an array that tuples of indices name, all of the same size.
struct IndexedParts {
  std::vector<std::int64_t> begins;  ///< the first element of each
  std::int64_t size = 1;
};
/// The last axis of `indices` holds tuples that count the axes of `dims` behind the first
/// `batch_axes`, which the two have in common.
IndexedParts parts_of(std::span<const std::int64_t> dims, const Tensor& indices,
                      std::size_t batch_axes);

}  // namespace lathe::ops
