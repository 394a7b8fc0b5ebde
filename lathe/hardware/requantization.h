#pragma once

#include <cstdint>
#include <string>

#include "lathe/hardware/stream.h"
#include "lathe/numerics/integer/requant.h"

namespace lathe::hardware {

using numerics::IntegerRounding;
/// Sums and products on their way to a stream.
using Wide = numerics::Integer128;

/// Brings a wide integer to the range of an element as numerics::requant does: what rtl/requant.sv
/// is tested against.
struct Requantization {
  std::int64_t multiplier = 1;
  int shift = 0;  ///< negative: to the left
  IntegerRounding rounding = IntegerRounding::NearestEven;
  bool is_symmetric = false;  ///< leaves out the most negative number
  Element element = {};

  std::int64_t apply(Wide x) const { return apply(x, multiplier); }
  /// With another multiplier in place of the one for all.
  std::int64_t apply(Wide x, std::int64_t other_multiplier) const;
  /// Bits of the multiplier; 0 where it is 1 and there is nothing to multiply by.
  int multiplier_width() const;
  /// "times 5, nearest even >> 5, saturated to s8".
  std::string text() const;
};

/// The bits of the narrowest two's complement number of at least 2 that holds both.
int signed_width(Wide low, Wide high);

}  // namespace lathe::hardware
