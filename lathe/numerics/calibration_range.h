#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lathe/core/number_format.h"

namespace lathe::numerics {

/// A scale for a format that is given one, and a zero point where it has one.
struct ScaleAndZero {
  float scale = 1;
  float zero = 0;
  friend bool operator==(const ScaleAndZero&, const ScaleAndZero&) = default;
};

/// Bits of a given scale that is a bfloat16 number.
inline constexpr int kShortScaleBits = 16;

/// The least scale with which nothing between two numbers is clipped; a power of two for formats
/// that use one, a bfloat16 number for those with short scales. Formats with a zero point always
/// keep 0 among their numbers. 1 for an empty range.
ScaleAndZero scale_for_range(const NumberFormat& format, double minimum, double maximum);

/// A matrix whose scales are wanted, one for each that the format is given.
struct CalibrationValues {
  std::span<const float> values;
  std::int64_t rows = 0, columns = 0;
};

/// scale_for_range of the finite values of every block.
std::vector<ScaleAndZero> scales_by_range(const NumberFormat& format,
                                          const CalibrationValues& values);

/// The scale that covers a share of the magnitudes (of both ends, with a zero point): 0.999 clips
/// one in a thousand.
std::vector<ScaleAndZero> scales_by_percentile(const NumberFormat& format,
                                               const CalibrationValues& values, double share);

struct ErrorSearch {
  /// Ranges are tried from the whole one down to this part of it.
  double least_ratio = 0.2;
  int steps = 64;
};
/// The scale with the least squared error among those for parts of the range.
std::vector<ScaleAndZero> scales_by_error(const NumberFormat& format,
                                          const CalibrationValues& values,
                                          const ErrorSearch& search = {});

}  // namespace lathe::numerics
