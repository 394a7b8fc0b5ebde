#pragma once

#include <cstdint>

#include "lathe/numerics/codecs/float_bits.h"

namespace lathe::numerics {

/// How a block's largest magnitude m becomes its scale 2^(code - 127), the E8M0 numbers of OCP MX.
///
/// Every rule is floor(log2 m) read from m's bits, after something was added to them that carries
/// into the exponent from a certain mantissa on. Code 255 says that the block is NaN.
struct SharedExponent {
  /// The exponent of the elements' largest number at scale 1.
  int highest_exponent = 0;
  /// Added to m's bits: 0 is the floor rule of the MX specification.
  std::uint32_t round_up = 0;
  /// Below this code the elements' smallest step would not be a float.
  int lowest_code = 0;

  static constexpr int kNanCode = 255;

  /// `largest` is the largest of the bit patterns without sign, so that any NaN wins.
  LATHE_HOST_DEVICE int code(std::uint32_t largest) const {
    if (largest >= kInfinityBits) return kNanCode;
    const auto field = static_cast<int>((largest + round_up) >> 23);
    const int code = (field > 254 ? 254 : field) - highest_exponent;
    return code < lowest_code ? lowest_code : code;
  }
  LATHE_HOST_DEVICE static float scale(int code) {
    return code == kNanCode ? float_of(kNanBits) : power_of_two(code - 127);
  }
  /// 1 / scale, which is a float too.
  LATHE_HOST_DEVICE static float inverse(int code) {
    return code == kNanCode ? float_of(kNanBits) : power_of_two(127 - code);
  }
};

/// The carries of the known rules. `mantissa` is of the elements' largest number, as float bits.
constexpr std::uint32_t kFloorRule = 0;
constexpr std::uint32_t kCeilRule = 0x7fffff;
constexpr std::uint32_t reciprocal_ceil_rule(std::uint32_t mantissa) {
  return 0x7fffff - mantissa;
}
/// Carries when m rounded to an element's mantissa bits would be the next power of two.
constexpr std::uint32_t even_rule(int mantissa_bits) {
  return std::uint32_t{1} << (22 - mantissa_bits);
}

}  // namespace lathe::numerics
