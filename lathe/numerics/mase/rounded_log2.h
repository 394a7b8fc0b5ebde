#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "lathe/numerics/codecs/float_bits.h"

namespace lathe::numerics {

/// Whole numbers made of log2(v) as float32 gives it, for v > 0. MASE rounds that float, and just
/// below a power of two the float already is the whole number, so it is no reading of exponents.
enum class Log2Rounding { Floor, Ceil, NearestEven };

inline int rounded_log2_slowly(float value, Log2Rounding rounding) {
  const auto log = static_cast<float>(std::log2(double{value}));
  const float whole = rounding == Log2Rounding::Floor  ? std::floor(log)
                      : rounding == Log2Rounding::Ceil ? std::ceil(log)
                                                       : std::nearbyint(log);
  return static_cast<int>(whole);
}

/// The same from a table: within [2^k, 2^(k+1)) the result is k up to some float and k + 1 from it
/// on.
class RoundedLog2 {
 public:
  explicit RoundedLog2(Log2Rounding rounding) : rounding_(rounding) {
    for (std::uint32_t field = 1; field < 255; ++field) {
      const int exponent = static_cast<int>(field) - 127;
      std::uint32_t low = field << 23;  // every float from `high` on gives k + 1
      std::uint32_t high = (field + 1) << 23;
      while (low < high) {
        const std::uint32_t middle = low + (high - low) / 2;
        if (rounded_log2_slowly(float_of(middle), rounding) > exponent)
          high = middle;
        else
          low = middle + 1;
      }
      first_[field] = high;
    }
  }
  int operator()(float value) const {
    const std::uint32_t bits = bits_of(value);
    const std::uint32_t field = bits >> 23;
    if (field == 0 || field >= 255) return rounded_log2_slowly(value, rounding_);
    return static_cast<int>(field) - 127 + (bits >= first_[field] ? 1 : 0);
  }

 private:
  Log2Rounding rounding_;
  std::array<std::uint32_t, 255> first_{};
};

inline int floor_log2(float value) {
  static const RoundedLog2 table(Log2Rounding::Floor);
  return table(value);
}
inline int ceil_log2(float value) {
  static const RoundedLog2 table(Log2Rounding::Ceil);
  return table(value);
}
inline int nearest_log2(float value) {
  static const RoundedLog2 table(Log2Rounding::NearestEven);
  return table(value);
}

}  // namespace lathe::numerics
