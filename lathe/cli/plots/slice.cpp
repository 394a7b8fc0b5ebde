// One small chart a parameter: its value against the result, later trials darker.
#include <fmt/format.h>

#include <cmath>

#include "lathe/cli/study_plots.h"
#include "lathe/report/chart_grid.h"
#include "lathe/report/layered_chart.h"

namespace lathe::cli {
namespace {

constexpr std::size_t kMostSlices = 12;

}  // namespace

std::string draw_slices(const PlotSource& source) {
  const std::vector<const ParameterColumn*> columns = source.chosen(kMostSlices);
  const std::vector<double>& values = source.values();
  const ObjectiveRange range = objective_range(values, source.direction());
  const double last = source.table.trials.empty() ? 1 : source.table.trials.back()->number;
  const report::Shading shading{.label = "trial",
                                .scale = report::linear_scale(0, std::max(last, 1.0), 4, false)};
  std::vector<std::string> charts;
  for (const ParameterColumn* column : columns) {
    report::Layer points{.size = point_size(values.size() * 2) * 0.8,
                         .opacity = point_opacity(values.size())};
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!range.is_within(values[i])) continue;
      points.x.push_back(column->values[i]);
      points.y.push_back(values[i]);
      points.shade.push_back(source.table.trials[i]->number);
      points.tooltips.push_back(trial_tooltip(*source.table.trials[i]));
    }
    report::Chart chart{.title = column->axis.label,
                        .x = column->axis,
                        .y = {.label = source.objective_name(source.objective)},
                        .width = 340,
                        .height = 280};
    chart.x.label = "value of the parameter";
    charts.push_back(report::layered_chart(chart, {points}, shading));
  }
  return report::chart_grid({.title = fmt::format("Slices of {}", source.name),
                             .subtitle = left_out_text(source, columns.size(), range.num_beyond),
                             .columns = 3,
                             .cell_width = 340,
                             .cell_height = 280},
                            charts);
}

}  // namespace lathe::cli
