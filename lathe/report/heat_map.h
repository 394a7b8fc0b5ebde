#pragma once

#include <string>
#include <vector>

#include "lathe/report/layered_chart.h"
#include "lathe/report/plot_axis.h"

namespace lathe::report {

/// Coloured cells over two axes, with points on top.
struct HeatMap {
  Chart chart;  ///< its axes' scales are those below
  AxisScale x = {}, y = {};
  std::size_t columns = 0, rows = 0;
  /// rows x columns from the lower left; a cell that is not finite stays empty.
  std::vector<double> cells = {};
  Shading shading = {};
  Layer points = {};  ///< one colour with a white rim
};
std::string heat_map(const HeatMap& map);

}  // namespace lathe::report
