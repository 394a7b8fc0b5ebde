// What trials reported on the way: would it have been right to prune earlier, or later?
#include <fmt/format.h>

#include <cmath>

#include "lathe/report/layered_chart.h"
#include "lathe/report/study_charts/study_charts.h"

namespace lathe::report {
namespace {

// A line of its own for each trial: what is not finite breaks the line.
void add_trial(Layer& layer, const ChartTrial& trial, const ObjectiveRange& range) {
  for (const auto& [step, value] : trial.reports) {
    layer.x.push_back(step);
    layer.y.push_back(std::isfinite(value) ? range.clamp(value) : NAN);
  }
  layer.x.push_back(NAN);
  layer.y.push_back(NAN);
}

// A report without a neighbour to be joined with would be no line at all.
Layer single_reports(const StudyData& data, const ObjectiveRange& range) {
  Layer layer{.name = "a single report", .color = "#6b6b6b", .size = 3};
  for (const ChartTrial& trial : data.trials) {
    if (trial.reports.size() != 1) continue;
    layer.x.push_back(trial.reports[0].first);
    layer.y.push_back(range.clamp(trial.reports[0].second));
    layer.tooltips.push_back(trial.tooltip);
  }
  return layer;
}

}  // namespace

std::string intermediate_chart(const StudyData& data) {
  std::vector<double> all;
  const ChartTrial* best = nullptr;
  const bool is_maximized = data.objectives[data.objective].is_maximized;
  std::size_t lines = 0;
  for (const ChartTrial& trial : data.trials) {
    if (trial.reports.empty()) continue;
    ++lines;
    for (const auto& [step, value] : trial.reports)
      if (std::isfinite(value)) all.push_back(value);
  }
  for (const std::size_t index : data.rows) {
    const ChartTrial& trial = data.trials[index];
    if (trial.reports.empty()) continue;
    const double value = trial.values[data.objective];
    if (best == nullptr || (is_maximized ? value > best->values[data.objective]
                                         : value < best->values[data.objective]))
      best = &trial;
  }
  const ObjectiveRange range = objective_range(all, is_maximized);
  const double opacity = lines <= 20 ? 0.9 : lines <= 200 ? 0.5 : 0.3;
  const double width = lines <= 20 ? 4 : lines <= 200 ? 2 : 1;
  Layer pruned{.name = "pruned or unfinished",
               .mark = Layer::Mark::Line,
               .color = "#9a9a9a",
               .size = width,
               .opacity = opacity};
  Layer complete{.name = "complete",
                 .mark = Layer::Mark::Line,
                 .color = "#0072b2",
                 .size = width,
                 .opacity = opacity};
  Layer top{.name = "best", .mark = Layer::Mark::Line, .color = "#d55e00"};
  for (const ChartTrial& trial : data.trials)
    if (!trial.reports.empty())
      add_trial(&trial == best                               ? top
                : trial.state == ChartTrial::State::Complete ? complete
                                                             : pruned,
                trial, range);
  if (best != nullptr) top.name = fmt::format("best, trial {}", best->number);
  std::vector<Layer> layers;
  for (const Layer& layer : {pruned, complete, top, single_reports(data, range)})
    if (!layer.x.empty()) layers.push_back(layer);
  return layered_chart(
      {.title = fmt::format("Intermediate values of {}", data.name),
       .x = {.label = "step"},
       .y = {.label = fmt::format("reported {}{}", data.objectives[data.objective].name,
                                  edge_text(range.num_beyond))}},
      layers);
}

}  // namespace lathe::report
