// Values in the order of the trials, and the best so far: is the search still getting anywhere?
#include <fmt/format.h>

#include <cmath>

#include "lathe/report/chart_grid.h"
#include "lathe/report/layered_chart.h"
#include "lathe/report/study_charts/study_charts.h"

namespace lathe::report {
namespace {

std::string draw_one(const StudyData& data, std::size_t objective, int height) {
  const std::vector<double> values = data.column(objective);
  const ObjectiveRange range = objective_range(values, data.objectives[objective].is_maximized);
  Layer points{.name = "complete",
               .size = point_size(values.size()),
               .opacity = point_opacity(values.size())};
  Layer pruned{.name = "pruned",
               .color = "#b0b0b0",
               .size = point_size(values.size()) * 0.8,
               .opacity = 0.8};
  Layer best{.name = "best so far", .mark = Layer::Mark::Steps};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double number = data.row(i).number;
    points.x.push_back(number);
    points.y.push_back(range.is_within(values[i]) ? values[i] : NAN);
    points.tooltips.push_back(data.row(i).tooltip);
    const bool is_better = best.y.empty() || (range.is_maximized ? values[i] > best.y.back()
                                                                 : values[i] < best.y.back());
    best.x.push_back(number);
    best.y.push_back(range.clamp(is_better ? values[i] : best.y.back()));
  }
  // A pruned trial's value is its last report.
  for (const ChartTrial& trial : data.trials) {
    if (trial.state != ChartTrial::State::Pruned || trial.values.size() <= objective) continue;
    if (!range.is_within(trial.values[objective])) continue;
    pruned.x.push_back(trial.number);
    pruned.y.push_back(trial.values[objective]);
    pruned.tooltips.push_back(trial.tooltip);
  }
  if (!best.x.empty()) {
    best.x.push_back(static_cast<double>(data.trials.size()) - 1);
    best.y.push_back(best.y.back());
  }
  std::vector<Layer> layers;
  if (!pruned.x.empty()) layers.push_back(pruned);
  points.color = "#0072b2";
  best.color = "#d55e00";
  layers.push_back(points);
  layers.push_back(best);
  return layered_chart(
      {.title = fmt::format("History of {}", data.name),
       .x = {.label = "trial"},
       .y = {.label = data.objectives[objective].name + beyond_text(range.num_beyond)},
       .height = height},
      layers);
}

}  // namespace

std::string history_chart(const StudyData& data) {
  const std::size_t count = data.objectives.size();
  if (count == 1) return draw_one(data, 0, 420);
  std::vector<std::string> charts;
  for (std::size_t i = 0; i < count; ++i) charts.push_back(draw_one(data, i, 320));
  return chart_grid({.title = fmt::format("History of {}", data.name),
                     .columns = 1,
                     .cell_width = 720,
                     .cell_height = 320},
                    charts);
}

}  // namespace lathe::report
