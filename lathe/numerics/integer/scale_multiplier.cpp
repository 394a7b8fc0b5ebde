#include "lathe/numerics/integer/scale_multiplier.h"

#include <algorithm>
#include <cmath>

#include "lathe/core/error.h"

namespace lathe::numerics {

ScaleMultipliers multipliers_of(std::span<const double> ratios, int bits) {
  check(!ratios.empty() && bits >= 1 && bits <= 31, "ratios, and 1 to 31 bits for each");
  for (const double ratio : ratios)
    if (!(ratio > 0) || !std::isfinite(ratio))
      fail("a ratio of scales is {}: expected a positive number", ratio);
  const double largest = *std::ranges::max_element(ratios);
  int exponent = 0;
  std::frexp(largest, &exponent);  // largest = m * 2^exponent, m from 1/2 to 1
  ScaleMultipliers result{.multipliers = {}, .shift = bits - exponent};
  const auto fill = [&] {
    result.multipliers.clear();
    for (const double ratio : ratios)
      result.multipliers.push_back(
          static_cast<std::int64_t>(std::nearbyint(std::ldexp(ratio, result.shift))));
  };
  fill();
  // The largest may have been rounded up to the next power of two.
  if (*std::ranges::max_element(result.multipliers) == std::int64_t{1} << bits) {
    --result.shift;
    fill();
  }
  // What every multiplier has in common is the shift's.
  while (std::ranges::all_of(result.multipliers, [](std::int64_t m) { return m % 2 == 0; })) {
    for (std::int64_t& multiplier : result.multipliers) multiplier /= 2;
    --result.shift;
  }
  return result;
}

}  // namespace lathe::numerics
