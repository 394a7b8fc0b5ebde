#include "lathe/report/plot_range.h"

#include <algorithm>
#include <cmath>

namespace lathe::report {
namespace {

constexpr double kLargest = 1e300;  // so that a difference of two values is finite

}  // namespace

bool is_drawable(double value, const Axis& axis) {
  return std::abs(value) <= kLargest && (!axis.is_logarithmic || value > 0) &&  // false for NaN
         (!axis.low || value >= *axis.low) && (!axis.high || value <= *axis.high);
}

void PlotRange::include(double value, const Axis& axis) {
  if (!is_drawable(value, axis)) return;
  low_ = std::min(low_, value);
  high_ = std::max(high_, value);
}

AxisScale PlotRange::scale(const Axis& axis, int num_ticks, bool round_outwards) const {
  if (!axis.categories.empty()) return category_scale(axis.categories);
  if (is_empty())
    return axis.is_logarithmic ? logarithmic_scale(1, 10, num_ticks)
                               : linear_scale(0, 1, num_ticks);
  if (axis.is_symmetric) {
    const double most = std::max(std::abs(low_), std::abs(high_));
    return linear_scale(-most, most, num_ticks, round_outwards);
  }
  return axis.is_logarithmic ? logarithmic_scale(low_, high_, num_ticks)
                             : linear_scale(low_, high_, num_ticks, round_outwards);
}

}  // namespace lathe::report
