#include "lathe/report/heat_map.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "lathe/core/error.h"
#include "lathe/report/markup.h"
#include "lathe/report/plot_frame.h"

namespace lathe::report {
namespace {

// Cells of one colour side by side in a row become one rectangle, and all rectangles of a colour
// one path.
std::string draw_cells(const HeatMap& map, const PlotFrame& frame) {
  const double width = (frame.right() - frame.left()) / static_cast<double>(map.columns);
  const double height = (frame.bottom() - frame.top()) / static_cast<double>(map.rows);
  std::map<std::string, std::string> paths;  // by colour
  for (std::size_t row = 0; row < map.rows; ++row) {
    const auto color_at = [&](std::size_t column) {
      const double value = map.cells[row * map.columns + column];
      return std::isfinite(value) ? map.shading.color(value) : std::string();
    };
    for (std::size_t column = 0; column < map.columns;) {
      const std::string color = color_at(column);
      std::size_t end = column + 1;
      while (end < map.columns && color_at(end) == color) ++end;
      // A third of a pixel of overlap: no white lines between.
      if (!color.empty())
        paths[color] += fmt::format(
            "M{} {}h{}v{}h-{}z", pixel(frame.left() + width * static_cast<double>(column)),
            pixel(frame.bottom() - height * static_cast<double>(row + 1) - 0.3),
            pixel(width * static_cast<double>(end - column) + 0.3), pixel(height + 0.3),
            pixel(width * static_cast<double>(end - column) + 0.3));
      column = end;
    }
  }
  std::string body;
  for (const auto& [color, path] : paths)
    body +=
        fmt::format("<path d=\"{}\" fill=\"{}\" shape-rendering=\"crispEdges\"/>\n", path, color);
  return body;
}

}  // namespace

std::string heat_map(const HeatMap& map) {
  check(map.cells.size() == map.rows * map.columns, "a value for each cell");
  PlotFrame frame(map.chart, map.x, map.y, {}, {.right = color_bar_width(map.shading) - 12});
  frame.add(draw_cells(map, frame));
  if (map.cells.empty()) frame.add_notice("no data");
  const Layer& points = map.points;
  const bool is_dense = points.x.size() > kMostTooltips;
  std::string path;
  for (std::size_t i = 0; i < points.x.size(); ++i) {
    if (!std::isfinite(points.x[i]) || !std::isfinite(points.y[i])) continue;
    const double x = frame.x(points.x[i]), y = frame.y(points.y[i]);
    if (!(x >= frame.left() - 1 && x <= frame.right() + 1)) continue;
    if (!(y >= frame.top() - 1 && y <= frame.bottom() + 1)) continue;
    if (is_dense) {
      path += fmt::format("M{} {}h0", pixel(x), pixel(y));
      continue;
    }
    frame.add(fmt::format(
        "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{}\" stroke=\"#ffffff\" stroke-width=\"1\">"
        "<title>{}</title></circle>\n",
        pixel(x), pixel(y), pixel(points.size), points.color.empty() ? kInk : points.color,
        i < points.tooltips.size() ? escape_markup(points.tooltips[i]) : ""));
  }
  if (is_dense)
    for (const auto& [color, width] :
         {std::pair<std::string_view, double>{"#ffffff", 2 * points.size + 1.5},
          {points.color.empty() ? kInk : std::string_view(points.color), 2 * points.size}})
      frame.add(
          fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" "
                      "stroke-linecap=\"round\" opacity=\"{}\"/>\n",
                      path, color, pixel(width), color == "#ffffff" ? "0.5" : "0.8"));
  frame.add(color_bar(map.shading, frame.right(), frame.top(), frame.bottom()));
  return frame.str();
}

}  // namespace lathe::report
