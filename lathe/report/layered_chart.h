#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lathe/report/color_scale.h"
#include "lathe/report/plot.h"

namespace lathe::report {

/// Values that are drawn alike.
struct Layer {
  enum class Mark {
    Points,
    Rings,    ///< points that are seen above others
    Crosses,  ///< for what went wrong
    Line,
    Steps,  ///< a line that keeps its height until the next point
  };
  std::string name = {};  ///< in the legend; none when empty
  Mark mark = Mark::Points;
  std::vector<double> x = {};
  std::vector<double> y = {};
  std::vector<double> shade = {};  ///< a value for each point, coloured by the chart's shading
  std::vector<std::string> tooltips = {};  ///< for each point; left out where points are many
  std::string color = {};                  ///< the palette's next when empty
  double size = 4;                         ///< of a point; a line is 2 wide
  double opacity = 1;
};

/// Several layers over the same axes, the first at the bottom, with a legend above and a colour bar
/// for the shading. Thousands of points become a few paths, so that the picture stays small. Points
/// that cannot be drawn are left out; a line breaks there.
std::string layered_chart(const Chart& chart, const std::vector<Layer>& layers,
                          const std::optional<Shading>& shading = {});

}  // namespace lathe::report
