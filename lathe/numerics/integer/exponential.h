#pragma once

#include <array>
#include <cstdint>

#include "lathe/numerics/integer/integer_square_root.h"

/// The exponentials of softmax: docs/integer.md, "Softmax". Powers of two by a table of 64 entries
/// for the fraction and a shift for the whole part.
namespace lathe::numerics {

/// Parts of a power of two, and what 2^0 is: 15 bits, so that a signed 16-bit multiplier takes it.
inline constexpr int kExponentialSteps = 64;
inline constexpr std::int64_t kExponentialOne = 32767;

/// Entry i is kExponentialOne * 2^(-i/64), rounded to the nearest. Made of integer square roots
/// alone, so that it is the same wherever it is compiled.
constexpr std::array<std::int64_t, kExponentialSteps> make_exponential_table() {
  __extension__ using Unsigned = unsigned __int128;
  constexpr int kFraction = 62;
  Unsigned step = Unsigned{1} << (kFraction - 1);  // one half; its 64th root is 2^(-1/64)
  for (int i = 0; i < 6; ++i) step = integer_square_root<Unsigned>(step << kFraction);
  std::array<std::int64_t, kExponentialSteps> table{};
  Unsigned power = Unsigned{1} << kFraction;
  for (std::int64_t& entry : table) {
    const Unsigned scaled = power * static_cast<Unsigned>(kExponentialOne);
    entry = static_cast<std::int64_t>((scaled + (Unsigned{1} << (kFraction - 1))) >> kFraction);
    power = power * step >> kFraction;
  }
  return table;
}
inline constexpr std::array<std::int64_t, kExponentialSteps> kExponentialTable =
    make_exponential_table();

/// How many 64ths of a power of two a distance between two scores is: distance * multiplier /
/// 2^shift with a half rounded up, where multiplier / 2^shift stands for
/// 64 * log2(e) * (the value of one step of the scores). The distance is not negative, shift >= 1,
/// and the product is below 2^63.
constexpr std::int64_t exponential_steps(std::int64_t distance, std::int64_t multiplier,
                                         int shift) {
  return (distance * multiplier + (std::int64_t{1} << (shift - 1))) >> shift;
}

/// kExponentialOne * 2^(-steps/64): the table's entry, shifted right with a half rounded up. From
/// 2^-16 on it is 0.
constexpr std::int64_t exponential(std::int64_t steps) {
  const std::int64_t whole = steps / kExponentialSteps;
  if (whole > 15) return 0;
  const std::int64_t entry = kExponentialTable[static_cast<std::size_t>(steps % kExponentialSteps)];
  return whole == 0 ? entry : (entry + (std::int64_t{1} << (whole - 1))) >> whole;
}

}  // namespace lathe::numerics
