#pragma once

#include <cstdint>

#include "lathe/core/rounding.h"

/// Marks what CUDA compiles for both sides. Codecs are headers of integer arithmetic that include
/// nothing but <cstdint> and an enumeration, so that every backend has the very same definition.
#ifdef __CUDACC__
#define LATHE_HOST_DEVICE __host__ __device__
#else
#define LATHE_HOST_DEVICE
#endif

namespace lathe::numerics {

constexpr std::uint32_t kSignBit = 0x80000000u;
constexpr std::uint32_t kInfinityBits = 0x7f800000u;
constexpr std::uint32_t kNanBits = 0x7fc00000u;

LATHE_HOST_DEVICE inline std::uint32_t bits_of(float value) {
  std::uint32_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits;
}
LATHE_HOST_DEVICE inline float float_of(std::uint32_t bits) {
  float value = 0;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

/// 2^exponent for exponents from -149 to 127; beyond them 0 and infinity.
LATHE_HOST_DEVICE inline float power_of_two(int exponent) {
  if (exponent > 127) return float_of(kInfinityBits);
  if (exponent >= -126) return float_of(static_cast<std::uint32_t>(exponent + 127) << 23);
  return exponent < -149 ? 0.0f : float_of(std::uint32_t{1} << (exponent + 149));
}

/// The magnitude of a finite float as significand * 2^exponent, the significand below 2^24.
struct Significand {
  std::uint32_t value = 0;
  int exponent = 0;
};
LATHE_HOST_DEVICE inline Significand significand_of(float value) {
  const std::uint32_t magnitude = bits_of(value) & ~kSignBit;
  const std::uint32_t field = magnitude >> 23;
  if (field == 0) return {magnitude, -149};
  return {(magnitude & 0x7fffffu) | 0x800000u, static_cast<int>(field) - 150};
}

/// floor(log2) of a whole number that is not 0.
LATHE_HOST_DEVICE inline int highest_bit(std::uint32_t value) {
#ifdef __CUDA_ARCH__
  return 31 - __clz(static_cast<int>(value));
#else
  return 31 - __builtin_clz(value);
#endif
}

/// value / 2^drop as a whole number. Floor goes towards minus infinity, so up for a magnitude
/// whose number is negative; Stochastic goes up with the probability of the part that is cut off,
/// as 32 random bits decide.
LATHE_HOST_DEVICE inline std::uint32_t shift_right_rounded(std::uint32_t value, int drop,
                                                           bool is_negative, Rounding rounding,
                                                           std::uint32_t random) {
  if (drop <= 0) return value;
  if (drop > 31) drop = 31;  // value is below 2^24, so nothing is kept at 31 either
  const std::uint32_t kept = value >> drop;
  const std::uint32_t rest = value & ((std::uint32_t{1} << drop) - 1);
  const std::uint32_t half = std::uint32_t{1} << (drop - 1);
  bool goes_up = false;
  switch (rounding) {
    case Rounding::NearestEven:
      goes_up = rest > half || (rest == half && (kept & 1) != 0);
      break;
    case Rounding::Floor:
      goes_up = is_negative && rest != 0;
      break;
    case Rounding::Stochastic:
      goes_up = random < ((std::uint64_t{rest} << 32) >> drop);
      break;
  }
  return kept + (goes_up ? 1 : 0);
}

}  // namespace lathe::numerics
