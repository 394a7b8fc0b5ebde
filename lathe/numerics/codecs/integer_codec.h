#pragma once

#include <cstdint>

#include "lathe/numerics/codecs/float_bits.h"

namespace lathe::numerics {

/// Whole numbers from `low` to `high` in `bits` bits: the code is the number modulo 2^bits after
/// `zero` has been added to it. Numbers beyond the ends become the ends; NaN has no code and
/// becomes the code of 0.
struct IntegerCodec {
  int bits = 8;
  std::int64_t low = -127;
  std::int64_t high = 127;
  std::int64_t zero = 0;

  LATHE_HOST_DEVICE std::int64_t round(float value, Rounding rounding, std::uint32_t random) const {
    const std::uint32_t magnitude_bits = bits_of(value) & ~kSignBit;
    if (magnitude_bits > kInfinityBits) return 0;
    const bool is_negative = (bits_of(value) & kSignBit) != 0;
    const std::int64_t end = is_negative ? low : high;
    const Significand magnitude = significand_of(value);
    if (magnitude.exponent > 9) return end;  // at least 2^33, infinity included
    const std::int64_t whole =
        magnitude.exponent >= 0
            ? std::int64_t{magnitude.value} << magnitude.exponent
            : std::int64_t{shift_right_rounded(magnitude.value, -magnitude.exponent, is_negative,
                                               rounding, random)};
    const std::int64_t number = is_negative ? -whole : whole;
    return number < low ? low : number > high ? high : number;
  }
  LATHE_HOST_DEVICE std::uint32_t encode(float value, Rounding rounding,
                                         std::uint32_t random) const {
    return static_cast<std::uint32_t>(round(value, rounding, random) + zero) & mask();
  }
  LATHE_HOST_DEVICE float decode(std::uint32_t code) const {
    std::int64_t stored = code & mask();
    // Numbers that may be negative are two's complement, unless a zero point moved them up.
    if (low + zero < 0 && stored >> (bits - 1) != 0) stored -= std::int64_t{1} << bits;
    return static_cast<float>(stored - zero);
  }
  LATHE_HOST_DEVICE std::uint32_t mask() const {
    return static_cast<std::uint32_t>((std::uint64_t{1} << bits) - 1);
  }
};

}  // namespace lathe::numerics
