#pragma once

#include <cstdint>

#include "lathe/numerics/integer/integer128.h"

/// The one place where integer graphs and hardware round a binary point away: docs/integer.md,
/// "Requant". rtl/requant.sv is tested against it.
namespace lathe::numerics {

/// Where a number between two integers goes.
enum class IntegerRounding {
  NearestEven,  ///< to the nearest, a tie to the even one
  Floor,        ///< to the lower one
  HalfUp,       ///< to the nearest, a tie to the higher one
};

/// x / 2^shift as an integer. A shift of 0 or less multiplies and drops nothing.
constexpr Integer128 shift_rounded(Integer128 x, int shift, IntegerRounding rounding) {
  if (shift <= 0) return x * (Integer128{1} << -shift);
  if (shift > 125) shift = 125;  // |x| < 2^124 is less than a half there and at any larger shift
  const Integer128 floor = x >> shift;  // arithmetic: towards minus infinity
  const Integer128 dropped = x - floor * (Integer128{1} << shift);
  const Integer128 half = Integer128{1} << (shift - 1);
  switch (rounding) {
    case IntegerRounding::Floor:
      return floor;
    case IntegerRounding::HalfUp:
      return floor + (dropped >= half ? 1 : 0);
    case IntegerRounding::NearestEven:
      break;
  }
  if (dropped == half) return floor + (floor & 1);
  return floor + (dropped > half ? 1 : 0);
}

/// The integers that a tensor or a stream may hold: two's complement of `width` bits, or none
/// below 0; `is_symmetric` leaves out the most negative one.
struct IntegerRange {
  int width = 8;
  bool is_signed = true;
  bool is_symmetric = false;

  constexpr std::int64_t low() const {
    if (!is_signed) return 0;
    const std::int64_t lowest = -(std::int64_t{1} << (width - 2)) * 2;
    return is_symmetric ? lowest + 1 : lowest;
  }
  constexpr std::int64_t high() const {
    return is_signed ? ((std::int64_t{1} << (width - 2)) - 1) * 2 + 1
                     : static_cast<std::int64_t>((std::uint64_t{1} << (width - 1)) * 2 - 1);
  }
  bool operator==(const IntegerRange&) const = default;
};

/// x * multiplier / 2^shift, rounded, then brought to the nearest end of the range where it is
/// outside. The product is exact: |x| < 2^64, 0 <= multiplier < 2^31.
constexpr std::int64_t requant(Integer128 x, std::int64_t multiplier, int shift,
                               IntegerRounding rounding, const IntegerRange& range) {
  const Integer128 y = shift_rounded(x * multiplier, shift, rounding);
  if (y < range.low()) return range.low();
  if (y > range.high()) return range.high();
  return static_cast<std::int64_t>(y);
}

}  // namespace lathe::numerics
