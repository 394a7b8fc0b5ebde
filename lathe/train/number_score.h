#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "lathe/train/answers.h"

namespace lathe::train {

/// How close a model of numbers comes to them.
struct NumberScore {
  double loss = 0;  ///< mean squared error
  /// Correlation of answers and numbers, and of their ranks, equal ones sharing their mean rank;
  /// nothing where all answers or all numbers are the same.
  std::optional<double> pearson, spearman;
  std::int64_t examples = 0;
  std::int64_t tokens = 0;
  double forward_seconds = 0;  ///< the model alone
};

/// Compares answers, one number each, with the examples' numbers.
NumberScore score_numbers(const Answers& answers, std::span<const float> numbers);

/// Pearson's correlation; nothing where one side does not vary.
std::optional<double> correlation(std::span<const double> a, std::span<const double> b);
/// The rank of each value from 1, the mean of their ranks for equal ones.
std::vector<double> ranks(std::span<const double> values);

}  // namespace lathe::train
