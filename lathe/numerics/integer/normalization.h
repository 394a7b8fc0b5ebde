#pragma once

#include <cstdint>
#include <span>

#include "lathe/numerics/integer/integer_square_root.h"
#include "lathe/numerics/integer/rounded_divide.h"

/// Layer norm on integers, up to its weight and bias: docs/integer.md, "Layer norm".
namespace lathe::numerics {

/// What does not change from row to row.
struct Normalization {
  std::int64_t size = 0;     ///< elements of a row
  std::int64_t epsilon = 0;  ///< eps * size^2 / scale^2, rounded
  int root_fraction = 0;     ///< bits of the square root behind its binary point
  int fraction = 0;          ///< bits of a result behind its binary point
};

/// What a row is centred and divided by: its sum, and size * standard deviation *
/// 2^root_fraction.
struct RowMoments {
  std::int64_t sum = 0;
  std::int64_t root = 1;
};

/// From the sum of a row's elements and the sum of their squares, both exact. A root of 0, of a row
/// of equal elements without epsilon, counts as 1: every difference from the mean is 0 then.
constexpr RowMoments row_moments(std::int64_t sum, std::int64_t squares,
                                 const Normalization& normalization) {
  const std::int64_t variance =  // size^2 times the variance
      normalization.size * squares - sum * sum + normalization.epsilon;
  const std::uint64_t radicand = static_cast<std::uint64_t>(variance)
                                 << (2 * normalization.root_fraction);
  const auto root = static_cast<std::int64_t>(integer_square_root(radicand));
  return {.sum = sum, .root = root == 0 ? 1 : root};
}

constexpr RowMoments row_moments(std::span<const std::int64_t> row,
                                 const Normalization& normalization) {
  std::int64_t sum = 0, squares = 0;
  for (const std::int64_t x : row) {
    sum += x;
    squares += x * x;
  }
  return row_moments(sum, squares, normalization);
}

/// (x - mean) / standard deviation * 2^fraction, rounded to the nearest, a tie to the even one.
constexpr std::int64_t normalized(std::int64_t x, const RowMoments& moments,
                                  const Normalization& normalization) {
  const std::int64_t centred = normalization.size * x - moments.sum;
  return static_cast<std::int64_t>(rounded_divide(
      Integer128{centred} *
          (std::int64_t{1} << (normalization.root_fraction + normalization.fraction)),
      moments.root));
}

}  // namespace lathe::numerics
