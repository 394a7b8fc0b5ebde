#pragma once

#include <string>
#include <vector>

#include "lathe/report/color_scale.h"
#include "lathe/report/plot_axis.h"

namespace lathe::report {

/// Upright axes side by side; each item is a line that crosses every axis at its value.
struct ParallelCoordinates {
  struct Upright {
    std::string name;
    AxisScale scale;
  };
  /// Values by axis; an item without one (NaN: a parameter that it does not have) passes below the
  /// axis, past a gap.
  struct Item {
    std::vector<double> values;
    double shade = 0;
  };
  std::string title;
  std::string subtitle = {};
  std::vector<Upright> axes;
  std::vector<Item> items;  ///< the last are on top
  Shading shading;
  int height = 420;
};

/// Draws them; the picture grows with the number of axes. Lines get thinner and fainter when there
/// are many, and values of a category spread a little, so that lines through it can be told apart.
std::string parallel_coordinates(const ParallelCoordinates& chart);

}  // namespace lathe::report
