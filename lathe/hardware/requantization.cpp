#include "lathe/hardware/requantization.h"

#include <fmt/format.h>

#include <algorithm>

namespace lathe::hardware {

std::int64_t Requantization::apply(Wide x, std::int64_t other_multiplier) const {
  return numerics::requant(x, other_multiplier, shift, rounding,
                           {.width = element.width,
                            .is_signed = element.is_signed,
                            .is_symmetric = element.is_signed && is_symmetric});
}

int Requantization::multiplier_width() const {
  return multiplier == 1 ? 0 : signed_width(0, multiplier) - 1;
}

std::string Requantization::text() const {
  const char* mode = rounding == IntegerRounding::NearestEven ? "nearest even"
                     : rounding == IntegerRounding::Floor     ? "floor"
                                                              : "half up";
  std::string moved = multiplier == 1 ? "" : fmt::format("times {}, ", multiplier);
  if (shift > 0) moved += fmt::format("{} >> {}, ", mode, shift);
  if (shift < 0) moved += fmt::format("<< {}, ", -shift);
  return fmt::format("{}saturated to {}{}", moved, element.text(),
                     is_symmetric ? " without its lowest" : "");
}

int signed_width(Wide low, Wide high) {
  return std::max(2, numerics::signed_bits(low, high));
}

}  // namespace lathe::hardware
