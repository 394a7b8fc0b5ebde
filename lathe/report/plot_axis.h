#pragma once

#include <string>
#include <vector>

namespace lathe::report {

/// A range of values along one side of a chart, with the ticks that name them.
struct AxisScale {
  double low = 0;
  double high = 1;
  bool is_logarithmic = false;
  std::vector<double> ticks = {};
  std::vector<std::string> names = {};  ///< if any, one for each tick instead of its number

  /// Where a value lies: 0 at the low end, 1 at the high end.
  double position(double value) const;
  std::string tick_text(double tick) const;
  bool operator==(const AxisScale&) const = default;
};

/// A scale that holds `low` to `high` with about `num_ticks` ticks at 1, 2 or 5 times a power of
/// ten, rounded outwards to a tick where `round_outwards`.
AxisScale linear_scale(double low, double high, int num_ticks, bool round_outwards = true);

/// A scale with ticks at powers of ten (every few when there are many); where it spans less than
/// two of them, at 1, 2 and 5 times one. Both ends must be positive.
AxisScale logarithmic_scale(double low, double high, int num_ticks);

/// A scale with a tick at 0, 1, ... for each name and half a step of room at both ends.
AxisScale category_scale(std::vector<std::string> names);

/// A number with at most `digits` significant digits and no idle zeros: "0.05", "1200", "1e-12".
std::string short_number(double value, int digits = 4);

}  // namespace lathe::report
