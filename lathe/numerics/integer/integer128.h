#pragma once

#include <cstdint>

namespace lathe::numerics {

/// What a 64-bit sum times a 31-bit multiplier needs on its way to a narrow result. No value of a
/// graph or a stream is so wide.
__extension__ using Integer128 = __int128;

/// The bits of the narrowest two's complement number that holds every integer from `low` to
/// `high`.
constexpr int signed_bits(Integer128 low, Integer128 high) {
  int bits = 1;
  while (bits < 127 &&
         (low < -(Integer128{1} << (bits - 1)) || high > (Integer128{1} << (bits - 1)) - 1))
    ++bits;
  return bits;
}

}  // namespace lathe::numerics
