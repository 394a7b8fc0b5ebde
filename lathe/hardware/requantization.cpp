#include "lathe/hardware/requantization.h"

#include <fmt/format.h>

#include <algorithm>

namespace lathe::hardware {
namespace {

// x * 2^-shift for a positive shift; the shift of a negative number floors.
Wide rounded_shift(Wide x, int shift, RequantMode mode) {
  if (shift > 120) shift = 120;  // nothing we compute reaches so far: a half is never met
  const Wide floor = x >> shift;
  const Wide dropped = x - (floor << shift);
  const Wide half = Wide{1} << (shift - 1);
  switch (mode) {
    case RequantMode::Floor:
      return floor;
    case RequantMode::HalfUp:
      return floor + (dropped >= half ? 1 : 0);
    case RequantMode::NearestEven:
      break;
  }
  if (dropped == half) return floor + (floor & 1);
  return floor + (dropped > half ? 1 : 0);
}

}  // namespace

std::int64_t Requantization::apply(Wide x, std::int64_t multiplier) const {
  Wide y = x * multiplier;
  if (shift > 0) y = rounded_shift(y, shift, mode);
  if (shift < 0) y *= Wide{1} << -shift;
  const Wide low = element.lowest() + (element.is_signed && is_symmetric ? 1 : 0);
  return static_cast<std::int64_t>(std::clamp<Wide>(y, low, element.highest()));
}

std::string Requantization::text() const {
  const char* rounding = mode == RequantMode::NearestEven ? "nearest even"
                         : mode == RequantMode::Floor     ? "floor"
                                                          : "half up";
  const std::string moved = shift == 0  ? ""
                            : shift > 0 ? fmt::format("{} >> {}, ", rounding, shift)
                                        : fmt::format("<< {}, ", -shift);
  return fmt::format("{}saturated to {}{}", moved, element.text(),
                     is_symmetric ? " without its lowest" : "");
}

int signed_width(Wide low, Wide high) {
  int width = 2;
  while (low < -(Wide{1} << (width - 1)) || high >= (Wide{1} << (width - 1))) ++width;
  return width;
}

}  // namespace lathe::hardware
