#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lathe/data/dataset.h"

namespace lathe::data {

/// Positions in a dataset, each list in ascending order.
struct ValidationSplit {
  std::vector<std::int64_t> train;
  std::vector<std::int64_t> validation;
  bool operator==(const ValidationSplit&) const = default;
};

/// Chooses `count` examples at random to hold out, each label in its share: a function of the
/// labels, the count and the seed alone.
ValidationSplit split_validation(std::span<const std::int32_t> labels, std::int64_t count,
                                 std::uint64_t seed);

/// The examples at these positions.
Dataset select(const Dataset& dataset, std::span<const std::int64_t> examples);

}  // namespace lathe::data
