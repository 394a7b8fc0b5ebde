#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "lathe/core/number_format.h"

/// Choosing the scales that a format is handed, from values it is going to round.
namespace lathe::numerics {

/// How much of the values' range a format covers: all of it, all but the outermost share, or what
/// gives the least squared error.
struct RangeRule {
  enum class Method { Extremes, Percentile, LeastError };
  Method method = Method::LeastError;
  double percentile = 0.9999;  ///< share of the values inside, for Percentile
};

/// "minmax", "percentile" (also "percentile=0.999") or "mse".
RangeRule parse_range_rule(std::string_view text);

/// One scale, and one zero point where the format has them, for each that a matrix needs.
struct Scales {
  std::vector<float> scales;
  std::vector<float> zeros;
};

/// The scale and zero point that cover minimum to maximum (and 0) without clipping.
struct ScaleAndZero {
  float scale = 1;
  float zero = 0;
};
ScaleAndZero scale_for_range(const NumberFormat& format, double minimum, double maximum);

/// Scales for a matrix, each from the values it covers. The format's scales must be handed in.
Scales choose_scales(const NumberFormat& format, std::span<const float> values, std::int64_t rows,
                     std::int64_t columns, const RangeRule& rule);

}  // namespace lathe::numerics
