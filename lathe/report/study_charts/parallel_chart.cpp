// Each trial a line through its parameters: where do the good ones (dark) run together?
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lathe/report/parallel_coordinates.h"
#include "lathe/report/study_charts/study_charts.h"

namespace lathe::report {
namespace {

constexpr std::size_t kMostAxes = 12;
constexpr int kParallelTicks = 5;

}  // namespace

std::string parallel_chart(const StudyData& data) {
  const std::vector<double> values = data.column(data.objective);
  const ObjectiveRange range =
      objective_range(values, data.objectives[data.objective].is_maximized);
  const AxisScale scale = linear_scale(range.low(), range.high(), kParallelTicks, false);
  const std::vector<const ParameterColumn*> columns = data.choose_parameters(kMostAxes);
  const std::string objective = data.objectives[data.objective].name;
  ParallelCoordinates chart{
      .title = fmt::format("Parallel coordinates of {}", data.name),
      .subtitle = left_out_text(data, columns.size(), 0),
      .axes = {{objective, scale}},
      .items = {},
      .shading = {.label = objective, .scale = scale, .is_reversed = !range.is_maximized}};
  for (const ParameterColumn* column : columns)
    chart.axes.push_back({column->axis.label, column->scale(kParallelTicks)});

  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // The best come last and lie on top.
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return range.is_maximized ? values[a] < values[b] : values[a] > values[b];
  });
  for (const std::size_t row : order) {
    const double value = range.clamp(values[row]);  // the far worse at the edge
    ParallelCoordinates::Item item{.values = {value}, .shade = value};
    for (const ParameterColumn* column : columns) item.values.push_back(column->values[row]);
    chart.items.push_back(std::move(item));
  }
  return parallel_coordinates(chart);
}

}  // namespace lathe::report
