#pragma once

#include "lathe/numerics/codecs/float_bits.h"

namespace lathe::numerics {

// Whole numbers made of log2(v) as float32 gives it, for v > 0. MASE rounds that float, and just
// below a power of two the float already is the whole number, so it is no reading of exponents.
//
// With v in [2^k, 2^(k+1)) and u the distance of the floats on the way from k to k + 1, float32's
// log2 is k + 1 from 2^(k+1) * (1 - u/2 * ln 2) on, k up to 2^k * (1 + u/2 * ln 2), and k + 1/2
// within sqrt(2) * 2^k * (1 +- u/2 * ln 2). Each limit is a few steps of v's mantissa, and u goes
// by the largest power of two in a number between k and k + 1, for which v's own bits serve: as a
// whole number they are 2^23 * (k + 127) and something below 2^23. (kernels/log2.inl.h is the same
// for vectors.)

/// v as a normal number times 2^-shift, as bits; `one` are the bits of 2^shift.
struct Log2Bits {
  std::int32_t bits = 0, one = 127 << 23;
};
LATHE_HOST_DEVICE inline Log2Bits log2_bits(float value) {
  const auto bits = static_cast<std::int32_t>(bits_of(value));
  if (bits >= 1 << 23) return {bits, 127 << 23};
  return {static_cast<std::int32_t>(bits_of(value * 0x1p24f)), (127 + 24) << 23};
}
/// The largest power of two in |bits - one|.
LATHE_HOST_DEVICE inline float log2_binade(std::int32_t bits, std::int32_t one) {
  return float_of(bits_of(static_cast<float>(bits - one)) & kInfinityBits);
}

LATHE_HOST_DEVICE inline int floor_log2(float value) {
  constexpr float kLn2 = 0x1.62e43p-1f;
  const Log2Bits v = log2_bits(value);
  const auto near = static_cast<std::int32_t>(log2_binade(v.bits, v.one) * (kLn2 * 0x1p-23f));
  return (v.bits + near - v.one) >> 23;
}

LATHE_HOST_DEVICE inline int ceil_log2(float value) {
  constexpr float kLn2 = 0x1.62e43p-1f;
  const Log2Bits v = log2_bits(value);
  // Close to k the conversion could round to it.
  const std::int32_t inside = v.bits | 0x400000;
  const auto near = static_cast<std::int32_t>(log2_binade(inside, v.one) * (kLn2 / 2 * 0x1p-23f));
  return (v.bits + (0x7fffff - near) - v.one) >> 23;
}

LATHE_HOST_DEVICE inline int nearest_log2(float value) {
  // k + 1/2 goes to the even neighbour: later than the square root for an even k, sooner for an
  // odd one. The last bit of the field is 1 for an even k.
  constexpr std::int32_t kRoot = 3474675;  // (sqrt(2) - 1) * 2^23 is this and kRest
  constexpr float kRest = 0.2030314f;
  constexpr float kSlope = 0.98025814f / 2;  // ln 2 * sqrt(2) / 2
  constexpr std::int32_t kShift = 128;       // so that truncation goes down
  const Log2Bits v = log2_bits(value);
  const bool is_odd = (v.bits >> 23 & 1) == 0;
  const float near = log2_binade(v.bits, v.one) * (kSlope * 0x1p-23f);
  const auto first = static_cast<std::int32_t>((is_odd ? -near : near) + (kRest + kShift));
  return (v.bits + ((1 << 23) - kRoot - 1 + kShift - first) - v.one) >> 23;
}

}  // namespace lathe::numerics
