#pragma once

#include <cstdint>

#include "lathe/numerics/codecs/float_bits.h"

namespace lathe::numerics {

/// What the codes with the largest exponent mean.
enum class Specials {
  None,            ///< numbers, all of them
  Nan,             ///< numbers, except that all ones is NaN (OCP E4M3)
  InfinityAndNan,  ///< infinity where the mantissa is 0, else NaN (IEEE 754, OCP E5M2)
};

/// A sign, an exponent with a bias and a mantissa, with subnormal numbers below the smallest
/// exponent. With no mantissa bits it is a logarithmic format: zero and the powers of two.
///
/// The smallest step must not be below 2^-149 nor the largest number beyond float's, so that every
/// number is a float.
struct MinifloatCodec {
  int exponent_bits = 4;
  int mantissa_bits = 3;
  int bias = 7;
  Specials specials = Specials::None;
  /// Numbers beyond the largest become infinity (or NaN, where there is none) instead of it.
  bool overflows = false;

  LATHE_HOST_DEVICE int bits() const { return 1 + exponent_bits + mantissa_bits; }
  /// The exponent of the smallest normal number.
  LATHE_HOST_DEVICE int lowest_exponent() const { return 1 - bias; }
  /// The exponent of the largest number.
  LATHE_HOST_DEVICE int highest_exponent() const {
    const int top = (1 << exponent_bits) - 1 - bias;
    return specials == Specials::InfinityAndNan || (specials == Specials::Nan && mantissa_bits == 0)
               ? top - 1
               : top;
  }
  LATHE_HOST_DEVICE std::uint32_t all_ones() const {
    return (std::uint32_t{1} << (exponent_bits + mantissa_bits)) - 1;
  }
  /// The code of the largest number, and the codes of infinity and NaN where there are any.
  LATHE_HOST_DEVICE std::uint32_t largest_code() const {
    if (specials == Specials::None) return all_ones();
    if (specials == Specials::Nan) return all_ones() - 1;
    return infinity_code() - 1;
  }
  LATHE_HOST_DEVICE std::uint32_t infinity_code() const {
    return all_ones() & ~((std::uint32_t{1} << mantissa_bits) - 1);
  }
  LATHE_HOST_DEVICE std::uint32_t nan_code() const {
    if (specials == Specials::None) return 0;
    return specials == Specials::Nan ? all_ones()
                                     : infinity_code() | std::uint32_t{1} << (mantissa_bits - 1);
  }
  /// What a number beyond the largest becomes.
  LATHE_HOST_DEVICE std::uint32_t overflow_code() const {
    if (!overflows || specials == Specials::None) return largest_code();
    return specials == Specials::Nan ? nan_code() : infinity_code();
  }

  LATHE_HOST_DEVICE std::uint32_t encode(float value, Rounding rounding,
                                         std::uint32_t random) const {
    const std::uint32_t magnitude_bits = bits_of(value) & ~kSignBit;
    const bool is_negative = (bits_of(value) & kSignBit) != 0;
    if (magnitude_bits > kInfinityBits) return nan_code();
    const std::uint32_t sign =
        is_negative ? std::uint32_t{1} << (exponent_bits + mantissa_bits) : 0;
    if (magnitude_bits == kInfinityBits) return sign | overflow_code();
    if (magnitude_bits == 0) return sign;
    const Significand magnitude = significand_of(value);
    const int exponent = highest_bit(magnitude.value) + magnitude.exponent;
    const int binade = exponent > lowest_exponent() ? exponent - lowest_exponent() : 0;
    const int step = lowest_exponent() + binade - mantissa_bits;
    // A binade's numbers have consecutive codes and so have the binades: a carry needs no care.
    const std::uint32_t steps = shift_right_rounded(magnitude.value, step - magnitude.exponent,
                                                    is_negative, rounding, random);
    const std::uint64_t code = (static_cast<std::uint64_t>(binade) << mantissa_bits) + steps;
    if (code > largest_code()) {
      // Rounding towards the inside never leaves the numbers.
      const bool is_inward = rounding == Rounding::Floor && !is_negative;
      return sign | (is_inward ? largest_code() : overflow_code());
    }
    return sign | static_cast<std::uint32_t>(code);
  }
  LATHE_HOST_DEVICE float decode(std::uint32_t code) const {
    const std::uint32_t magnitude = code & all_ones();
    const std::uint32_t sign = (code >> (exponent_bits + mantissa_bits) & 1) != 0 ? kSignBit : 0;
    if (specials == Specials::InfinityAndNan && magnitude >= infinity_code())
      return float_of(magnitude == infinity_code() ? sign | kInfinityBits : kNanBits);
    if (specials == Specials::Nan && magnitude == all_ones()) return float_of(kNanBits);
    const int field = static_cast<int>(magnitude >> mantissa_bits);
    const std::uint32_t mantissa = magnitude & ((std::uint32_t{1} << mantissa_bits) - 1);
    const std::uint32_t steps =
        field == 0 ? mantissa : mantissa | std::uint32_t{1} << mantissa_bits;
    const int step = lowest_exponent() + (field > 0 ? field - 1 : 0) - mantissa_bits;
    // Both factors are floats and so is their product. 2^step alone may be: step >= -149.
    const float value = static_cast<float>(steps) * power_of_two(step);
    return float_of(bits_of(value) | sign);
  }
};

}  // namespace lathe::numerics
