// One small chart a parameter: its value against the result, later trials darker.
#include <fmt/format.h>

#include <cmath>

#include "lathe/report/chart_grid.h"
#include "lathe/report/layered_chart.h"
#include "lathe/report/study_charts/study_charts.h"

namespace lathe::report {
namespace {

constexpr std::size_t kMostSlices = 12;

}  // namespace

std::string slice_charts(const StudyData& data) {
  const std::vector<const ParameterColumn*> columns = data.choose_parameters(kMostSlices);
  const std::vector<double> values = data.column(data.objective);
  const ObjectiveRange range =
      objective_range(values, data.objectives[data.objective].is_maximized);
  const double last = data.rows.empty() ? 1 : data.row(data.rows.size() - 1).number;
  const Shading shading{.label = "trial", .scale = linear_scale(0, std::max(last, 1.0), 4, false)};
  std::vector<std::string> charts;
  for (const ParameterColumn* column : columns) {
    Layer points{.size = point_size(values.size() * 2) * 0.8,
                 .opacity = point_opacity(values.size())};
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!range.is_within(values[i])) continue;
      points.x.push_back(column->values[i]);
      points.y.push_back(values[i]);
      points.shade.push_back(data.row(i).number);
      points.tooltips.push_back(data.row(i).tooltip);
    }
    Chart chart{.title = column->axis.label,
                .x = column->axis,
                .y = {.label = data.objectives[data.objective].name},
                .width = 340,
                .height = 280};
    chart.x.label = "value of the parameter";
    charts.push_back(layered_chart(chart, {points}, shading));
  }
  return chart_grid({.title = fmt::format("Slices of {}", data.name),
                     .subtitle = left_out_text(data, columns.size(), range.num_beyond),
                     .columns = 3,
                     .cell_width = 340,
                     .cell_height = 280},
                    charts);
}

}  // namespace lathe::report
