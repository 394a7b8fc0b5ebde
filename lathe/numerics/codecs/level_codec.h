#pragma once

#include <cstdint>

#include "lathe/numerics/codecs/float_bits.h"

namespace lathe::numerics {

/// Sixteen numbers in ascending order, each coded by its place. The nearest is taken, of two
/// equally near ones that with the even code.
struct LevelCodec {
  static constexpr int kLevels = 16;
  const float* levels = nullptr;
  /// A number gets at least the code i + 1 from thresholds[i] on (NearestEven).
  const float* thresholds = nullptr;

  LATHE_HOST_DEVICE std::uint32_t encode(float value, Rounding rounding,
                                         std::uint32_t random) const {
    if (!(value == value)) return zero_code();
    std::uint32_t below = 0;  // the last level that is not above the value
    if (rounding == Rounding::NearestEven) {
      while (below + 1 < kLevels && value >= thresholds[below]) ++below;
      return below;
    }
    while (below + 1 < kLevels && value >= levels[below + 1]) ++below;
    if (rounding == Rounding::Floor || below + 1 == kLevels || value < levels[0]) return below;
    const float share = (value - levels[below]) / (levels[below + 1] - levels[below]);
    const float position = static_cast<float>(random >> 8) * 0x1p-24f;
    return position < share ? below + 1 : below;
  }
  LATHE_HOST_DEVICE float decode(std::uint32_t code) const { return levels[code % kLevels]; }
  LATHE_HOST_DEVICE std::uint32_t zero_code() const {
    std::uint32_t code = 0;
    while (code + 1 < kLevels && levels[code] < 0) ++code;
    return code;
  }
};

}  // namespace lathe::numerics
