#pragma once

#include <cstdint>
#include <string>

#include "lathe/hardware/stream.h"

namespace lathe::hardware {

/// Sums and products on their way to a stream: the widest stream element times the widest
/// multiplier fits.
__extension__ using Wide = __int128;

/// How rtl/requant.sv rounds what a shift drops.
enum class RequantMode { NearestEven = 0, Floor = 1, HalfUp = 2 };

/// Brings a wide integer to the range of an element: times a multiplier, times 2^-shift, rounded,
/// saturated. The definition that rtl/requant.sv is tested against.
struct Requantization {
  int shift = 0;  ///< negative: to the left
  RequantMode mode = RequantMode::NearestEven;
  bool is_symmetric = false;  ///< leaves out the most negative number
  Element element = {};

  std::int64_t apply(Wide x, std::int64_t multiplier = 1) const;
  /// "nearest even >> 5 to s8".
  std::string text() const;
};

/// The bits of the narrowest two's complement number that holds both.
int signed_width(Wide low, Wide high);

}  // namespace lathe::hardware
