// Two parameters and the result as colour: cells show the mean of the trials around them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lathe/report/chart_grid.h"
#include "lathe/report/heat_map.h"
#include "lathe/report/study_charts/study_charts.h"

namespace lathe::report {
namespace {

constexpr std::size_t kCells = 48;  // along an axis of numbers
constexpr int kContourTicks = 6;

struct Place {
  double x, y, value;
};

std::size_t num_cells(const AxisScale& scale) {
  return scale.names.empty() ? kCells : scale.names.size();
}

// The mean of all trials, each weighted by how near it is; NaN where none is near. Categories are
// not near to each other, whatever their order.
double mean_around(const std::vector<Place>& places, double x, double y, double x_width,
                   double y_width) {
  double sum = 0, weights = 0;
  for (const Place& place : places) {
    const double dx = (place.x - x) / x_width, dy = (place.y - y) / y_width;
    const double distance = dx * dx + dy * dy;
    if (distance > 9) continue;
    const double weight = std::exp(-0.5 * distance);
    sum += weight * place.value;
    weights += weight;
  }
  return weights > 0 ? sum / weights : NAN;
}

std::string draw_pair(const StudyData& data, const ParameterColumn& x, const ParameterColumn& y,
                      int width, int height) {
  const std::vector<double> values = data.column(data.objective);
  const ObjectiveRange range =
      objective_range(values, data.objectives[data.objective].is_maximized);
  const std::string objective = data.objectives[data.objective].name;
  HeatMap map{
      .chart = {.title = fmt::format("{} by {} and {}", objective, x.axis.label, y.axis.label),
                .x = x.axis,
                .y = y.axis,
                .width = width,
                .height = height},
      .x = x.scale(kContourTicks),
      .y = y.scale(kContourTicks),
      .shading = {.label = objective,
                  .scale = linear_scale(range.low(), range.high(), kContourTicks, false),
                  .is_reversed = !range.is_maximized},
      .points = {.size = point_size(values.size()) * 0.7}};
  std::vector<Place> places;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(x.values[i]) || !std::isfinite(y.values[i])) continue;
    places.push_back(
        {map.x.position(x.values[i]), map.y.position(y.values[i]), range.clamp(values[i])});
    map.points.x.push_back(x.values[i]);
    map.points.y.push_back(y.values[i]);
    map.points.tooltips.push_back(data.row(i).tooltip);
  }
  map.columns = num_cells(map.x);
  map.rows = num_cells(map.y);
  // Narrower where there are more trials to average over.
  const double smooth = std::clamp(
      0.25 / std::pow(static_cast<double>(std::max<std::size_t>(places.size(), 1)), 0.25), 0.03,
      0.15);
  const double x_width = map.x.names.empty() ? smooth : 0.1 / static_cast<double>(map.columns);
  const double y_width = map.y.names.empty() ? smooth : 0.1 / static_cast<double>(map.rows);
  for (std::size_t row = 0; row < map.rows; ++row)
    for (std::size_t column = 0; column < map.columns; ++column)
      map.cells.push_back(mean_around(
          places, (static_cast<double>(column) + 0.5) / static_cast<double>(map.columns),
          (static_cast<double>(row) + 0.5) / static_cast<double>(map.rows), x_width, y_width));
  return heat_map(map);
}

}  // namespace

std::string contour_chart(const StudyData& data) {
  const std::vector<const ParameterColumn*> columns = data.choose_parameters(2);
  if (columns.size() == 2) return draw_pair(data, *columns[0], *columns[1], 720, 480);
  std::vector<std::string> charts;
  for (std::size_t i = 0; i < columns.size(); ++i)
    for (std::size_t j = i + 1; j < columns.size(); ++j)
      charts.push_back(draw_pair(data, *columns[i], *columns[j], 480, 340));
  return chart_grid({.title = fmt::format("Contours of {}", data.name),
                     .columns = 2,
                     .cell_width = 480,
                     .cell_height = 340},
                    charts);
}

}  // namespace lathe::report
