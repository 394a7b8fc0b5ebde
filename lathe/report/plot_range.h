#pragma once

#include <limits>

#include "lathe/report/plot.h"
#include "lathe/report/plot_axis.h"

namespace lathe::report {

/// Whether a value has a place on the axis: finite, positive on a logarithmic one, and between the
/// axis' own limits if it has any.
bool is_drawable(double value, const Axis& axis);

/// The least and the greatest of the values that can be drawn.
class PlotRange {
 public:
  void include(double value, const Axis& axis);
  bool is_empty() const { return low_ > high_; }
  double low() const { return low_; }
  double high() const { return high_; }
  /// A scale that holds them all; one with the axis' categories if it has any.
  AxisScale scale(const Axis& axis, int num_ticks = 6, bool round_outwards = true) const;

 private:
  double low_ = std::numeric_limits<double>::infinity();
  double high_ = -std::numeric_limits<double>::infinity();
};

}  // namespace lathe::report
