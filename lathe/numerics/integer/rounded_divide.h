#pragma once

#include <cstdint>

#include "lathe/numerics/integer/wide_integer.h"

namespace lathe::numerics {

/// numerator / denominator as the nearest integer, a tie to the even one: what softmax and layer
/// norm divide by. The denominator is positive.
///
/// Both signs of a numerator give the same magnitude, so hardware divides magnitudes: quotient and
/// remainder bit by bit, then one more where twice the remainder is above the denominator, or equal
/// to it and the quotient odd.
constexpr WideInteger rounded_divide(WideInteger numerator, WideInteger denominator) {
  const bool is_negative = numerator < 0;
  const WideInteger magnitude = is_negative ? -numerator : numerator;
  WideInteger quotient = magnitude / denominator;
  const WideInteger twice = 2 * (magnitude - quotient * denominator);
  if (twice > denominator || (twice == denominator && (quotient & 1) != 0)) ++quotient;
  return is_negative ? -quotient : quotient;
}

}  // namespace lathe::numerics
