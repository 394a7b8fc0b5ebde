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

/// `count` examples, each label in its share, always the same ones; all for 0 or where there are
/// no more. Files are often sorted by label: the first few would be of one class.
Dataset take_some(Dataset all, std::int64_t count);

}  // namespace lathe::data
