#pragma once

#include <string>
#include <string_view>

#include "lathe/report/plot_axis.h"

namespace lathe::report {

/// A colour between 0 (pale) and 1 (dark), such as "#1f6f8b". Lightness falls evenly, so that the
/// order can be seen in grey and with any kind of colour vision. Beyond the ends is the end's
/// colour.
std::string shade_color(double position);

/// What colours mean: values along a scale.
struct Shading {
  std::string label;
  AxisScale scale;
  bool is_reversed = false;  ///< low values are dark

  /// The colour of a value.
  std::string color(double value) const;
};

/// The room that a colour bar takes on the right of a chart.
double color_bar_width(const Shading& shading);
/// A bar with ticks and its label, from `top` to `bottom`, in the room that begins at `left`.
std::string color_bar(const Shading& shading, double left, double top, double bottom);

}  // namespace lathe::report
