#pragma once

#include <bit>
#include <cstdint>

namespace lathe::numerics {

/// What draws the slopes of a randomised leaky ReLU in integers: a shift register of eight bits
/// with feedback, which steps once for each beat of elements. Twin of rtl/random_leaky_relu.sv.
struct SlopeRegister {
  static constexpr std::int64_t kFirst = 1;    ///< where it starts, 1 to 255
  static constexpr std::int64_t kTaps = 0xB8;  ///< whose parity is shifted in

  unsigned state = kFirst;
  unsigned taps = kTaps;

  /// In 64ths: 8 to 20.
  constexpr std::int64_t slope() const { return 8 + ((state & 15) * 13 >> 4); }
  /// An arithmetic shift: it floors.
  constexpr std::int64_t apply(std::int64_t x) const { return x < 0 ? (x * slope()) >> 6 : x; }
  constexpr void step() {
    state = (state << 1 & 255) | (static_cast<unsigned>(std::popcount(state & taps)) & 1U);
  }
};

}  // namespace lathe::numerics
