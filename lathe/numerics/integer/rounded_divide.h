#pragma once

#include <cstdint>

#include "lathe/numerics/integer/integer128.h"

namespace lathe::numerics {

/// numerator / denominator as the nearest integer, a tie to the even one: what softmax and layer
/// norm divide by. The denominator is positive.
///
/// Both signs of a numerator give the same magnitude, so hardware divides magnitudes: quotient and
/// remainder bit by bit, then one more where twice the remainder is above the denominator, or equal
/// to it and the quotient odd.
constexpr Integer128 rounded_divide(Integer128 numerator, Integer128 denominator) {
  const bool is_negative = numerator < 0;
  const Integer128 magnitude = is_negative ? -numerator : numerator;
  Integer128 quotient = magnitude / denominator;
  const Integer128 twice = 2 * (magnitude - quotient * denominator);
  if (twice > denominator || (twice == denominator && (quotient & 1) != 0)) ++quotient;
  return is_negative ? -quotient : quotient;
}

}  // namespace lathe::numerics
