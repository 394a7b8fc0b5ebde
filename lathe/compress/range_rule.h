#pragma once

#include <string_view>
#include <vector>

#include "lathe/numerics/calibration_range.h"

namespace lathe::compress {

/// How much of the values' range a format covers: all of it, a share of the values, or what gives
/// the least squared error.
struct RangeRule {
  enum class Method { Extremes, Percentile, LeastError };
  Method method = Method::LeastError;
  double percentile = 0.9999;
};

/// "minmax", "percentile", "percentile=0.999" or "mse".
RangeRule parse_range_rule(std::string_view text);

/// Scales for a matrix, one for each that the format is handed.
std::vector<numerics::ScaleAndZero> choose_scales(const NumberFormat& format,
                                                  const numerics::CalibrationValues& values,
                                                  const RangeRule& rule);

}  // namespace lathe::compress
