#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::data {

/// Data of which one part in so many is the split `test` and the others are `train`: `mnist@2/5`.
struct FoldedData {
  std::string base;        ///< whose training split is cut, or its test split where it has no other
  std::int64_t fold = 0;   ///< from 1
  std::int64_t count = 0;  ///< of folds
  bool operator==(const FoldedData&) const = default;
};
/// Reads a name that ends with @FOLD/COUNT; nullopt where it does not. Fails on a fold that is not
/// among 1 to COUNT.
std::optional<FoldedData> parse_folds(std::string_view spec);

/// The fold of each example, from 1: every fold has each label in its share. A function of the
/// labels and the number of folds alone.
std::vector<std::int64_t> assign_folds(std::span<const std::int32_t> labels, std::int64_t count);

}  // namespace lathe::data
