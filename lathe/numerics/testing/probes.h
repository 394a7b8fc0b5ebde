#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "lathe/numerics/codecs/float_bits.h"

namespace lathe::numerics {

/// Where a rounding can go wrong: every float with no more than bfloat16's or half's bits, every
/// number of the format, the middle between each two and beyond the last, and the floats next to
/// all of these, with infinities and NaN.
inline std::vector<float> probes(const std::vector<double>& numbers) {
  std::vector<float> values;
  for (std::uint32_t upper = 0; upper < 0x10000; ++upper) {
    values.push_back(float_of(upper << 16));
    // A half: sign, five exponent bits, ten mantissa bits.
    const std::uint32_t field = upper >> 10 & 31;
    const std::uint32_t mantissa = upper & 0x3ff;
    const double magnitude = field == 0 ? std::ldexp(mantissa, -24)
                             : field == 31
                                 ? (mantissa == 0 ? INFINITY : NAN)
                                 : std::ldexp(mantissa | 0x400, static_cast<int>(field) - 25);
    values.push_back(static_cast<float>((upper & 0x8000) != 0 ? -magnitude : magnitude));
  }
  const auto add = [&](double value) {
    const auto nearest = static_cast<float>(value);
    values.push_back(nearest);
    values.push_back(std::nextafter(nearest, -INFINITY));
    values.push_back(std::nextafter(nearest, INFINITY));
  };
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    add(numbers[i]);
    if (i > 0) add((numbers[i - 1] + numbers[i]) / 2);
  }
  if (numbers.size() > 1) {
    const double last = numbers.back();
    const double step = last - numbers[numbers.size() - 2];
    for (const double beyond : {step / 2, step, 3 * step}) {
      add(last + beyond);
      add(-last - beyond);
    }
  }
  return values;
}

}  // namespace lathe::numerics
