#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace lathe::compress {

/// An option of a class in whole numbers.
struct ClassOption {
  std::int64_t weight = 0;
  std::int64_t value = 0;
  std::size_t index = 0;  ///< where the caller's option stands
};

/// Takes one option of each class so that the sum of values is least and that of weights at most
/// `capacity`; gives each class's `index`, or nullopt when the weights cannot be so small.
///
/// No class may be empty, and sums of absolute weights and of absolute values must stay below 2^61.
std::optional<std::vector<std::size_t>> solve_choices(std::vector<std::vector<ClassOption>> classes,
                                                      std::int64_t capacity);

}  // namespace lathe::compress
