// Values in the order of the trials, and the best so far: is the search still getting anywhere?
#include <fmt/format.h>

#include <cmath>

#include "lathe/cli/study_plots.h"
#include "lathe/report/chart_grid.h"
#include "lathe/report/layered_chart.h"

namespace lathe::cli {
namespace {

using report::Layer;

std::string draw_one(const PlotSource& source, std::size_t objective, int height) {
  const std::vector<double>& values = source.table.objectives[objective];
  const study::Direction direction = source.history->directions()[objective];
  const ObjectiveRange range = objective_range(values, direction);
  Layer points{.name = "complete",
               .size = point_size(values.size()),
               .opacity = point_opacity(values.size())};
  Layer pruned{.name = "pruned",
               .color = "#b0b0b0",
               .size = point_size(values.size()) * 0.8,
               .opacity = 0.8};
  Layer best{.name = "best so far", .mark = Layer::Mark::Steps};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double number = source.table.trials[i]->number;
    points.x.push_back(number);
    points.y.push_back(range.is_within(values[i]) ? values[i] : NAN);
    points.tooltips.push_back(trial_tooltip(*source.table.trials[i]));
    const bool is_better = best.y.empty() || (range.is_maximized ? values[i] > best.y.back()
                                                                 : values[i] < best.y.back());
    best.x.push_back(number);
    best.y.push_back(range.clamp(is_better ? values[i] : best.y.back()));
  }
  // A pruned trial's value is its last report.
  for (const study::TrialRecord& trial : source.history->trials()) {
    if (trial.state != study::TrialState::Pruned || trial.values.size() <= objective) continue;
    if (!range.is_within(trial.values[objective])) continue;
    pruned.x.push_back(trial.number);
    pruned.y.push_back(trial.values[objective]);
    pruned.tooltips.push_back(trial_tooltip(trial));
  }
  if (!best.x.empty()) {
    best.x.push_back(static_cast<double>(source.history->trials().size()) - 1);
    best.y.push_back(best.y.back());
  }
  std::vector<Layer> layers;
  if (!pruned.x.empty()) layers.push_back(pruned);
  points.color = "#0072b2";
  best.color = "#d55e00";
  layers.push_back(points);
  layers.push_back(best);
  return report::layered_chart(
      {.title = fmt::format("History of {}", source.name),
       .x = {.label = "trial"},
       .y = {.label = source.objective_name(objective) + beyond_text(range.num_beyond)},
       .height = height},
      layers);
}

}  // namespace

std::string draw_history(const PlotSource& source) {
  const std::size_t count = source.history->directions().size();
  if (count == 1) return draw_one(source, 0, 420);
  std::vector<std::string> charts;
  for (std::size_t i = 0; i < count; ++i) charts.push_back(draw_one(source, i, 320));
  return report::chart_grid({.title = fmt::format("History of {}", source.name),
                             .columns = 1,
                             .cell_width = 720,
                             .cell_height = 320},
                            charts);
}

}  // namespace lathe::cli
