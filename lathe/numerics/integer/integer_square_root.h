#pragma once

#include <cstdint>

namespace lathe::numerics {

/// The largest integer whose square is not above x, one bit after the other from the highest: as
/// many steps as x has pairs of bits, each a subtraction, which is how hardware does it too.
template <typename Unsigned = std::uint64_t>
constexpr Unsigned integer_square_root(Unsigned x) {
  Unsigned root = 0;
  Unsigned bit = Unsigned{1} << (sizeof(Unsigned) * 8 - 2);
  while (bit > x) bit >>= 2;
  for (; bit != 0; bit >>= 2) {
    if (x >= root + bit) {
      x -= root + bit;
      root = (root >> 1) + bit;
    } else {
      root >>= 1;
    }
  }
  return root;
}

}  // namespace lathe::numerics
