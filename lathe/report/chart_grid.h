#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lathe::report {

/// Charts of one size side by side in one picture, row by row, under a common title.
struct ChartGrid {
  std::string title;
  std::string subtitle = {};  ///< a smaller line below it, if any
  int columns = 3;
  int cell_width = 320;
  int cell_height = 260;
};
std::string chart_grid(const ChartGrid& grid, const std::vector<std::string>& charts);

}  // namespace lathe::report
