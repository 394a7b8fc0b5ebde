// Every trial in its order, and the best so far: is the search still getting anywhere?
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lathe/report/chart_grid.h"
#include "lathe/report/layered_chart.h"
#include "lathe/report/study_charts/study_charts.h"

namespace lathe::report {
namespace {

using State = ChartTrial::State;

constexpr double kFoot = 0.07;  // of the range, below it: trials without a value stand there

// What a trial came to: its result, or the last report of a pruned one. NaN where it has none.
double value_of(const ChartTrial& trial, std::size_t objective) {
  const bool has_value = trial.state == State::Complete || trial.state == State::Pruned;
  return has_value && trial.values.size() > objective ? trial.values[objective] : NAN;
}

// A layer for the trials of a state that have no value to stand at.
Layer without_value(const StudyData& data, State state, std::size_t objective, const char* name,
                    const char* color, Layer::Mark mark, double y) {
  Layer layer{.name = name, .mark = mark, .color = color, .size = 3.5};
  for (const ChartTrial& trial : data.trials) {
    if (trial.state != state || std::isfinite(value_of(trial, objective))) continue;
    layer.x.push_back(trial.number);
    layer.y.push_back(y);
    layer.tooltips.push_back(trial.tooltip);
  }
  return layer;
}

std::string draw_one(const StudyData& data, std::size_t objective, int height) {
  std::vector<double> values;
  for (const ChartTrial& trial : data.trials)
    if (const double value = value_of(trial, objective); std::isfinite(value))
      values.push_back(value);
  const ObjectiveRange range = objective_range(values, data.objectives[objective].is_maximized);
  const double span = range.high() - range.low();
  const double foot =
      range.low() - kFoot * (span > 0 ? span : std::max(std::abs(range.low()), 1.0));

  Layer points{.name = "complete",
               .color = "#0072b2",
               .size = point_size(values.size()),
               .opacity = point_opacity(values.size())};
  Layer pruned{.name = "pruned",
               .color = "#8c8c8c",
               .size = point_size(values.size()) * 0.8,
               .opacity = 0.8};
  Layer beyond{.name = "far worse, at the edge",
               .mark = Layer::Mark::Rings,
               .color = "#8c8c8c",
               .size = 3.5};
  Layer best{.name = "best so far", .mark = Layer::Mark::Steps, .color = "#d55e00"};
  for (const ChartTrial& trial : data.trials) {
    const double value = value_of(trial, objective);
    if (!std::isfinite(value)) continue;
    Layer& layer = !range.is_within(value)          ? beyond
                   : trial.state == State::Complete ? points
                                                    : pruned;
    layer.x.push_back(trial.number);
    layer.y.push_back(range.clamp(value));
    layer.tooltips.push_back(trial.tooltip);
    if (trial.state != State::Complete) continue;
    const bool is_better =
        best.y.empty() || (range.is_maximized ? value > best.y.back() : value < best.y.back());
    best.x.push_back(trial.number);
    best.y.push_back(range.clamp(is_better ? value : best.y.back()));
  }
  if (!best.x.empty()) {
    best.x.push_back(static_cast<double>(data.trials.size()) - 1);
    best.y.push_back(best.y.back());
  }
  // A line to tell what stands on it from values.
  Layer ground{.mark = Layer::Mark::Line, .color = "#b0b0b0", .size = 1};
  ground.x = {0, static_cast<double>(data.trials.size()) - 1};
  ground.y = {foot, foot};
  std::vector<Layer> layers = {
      pruned,
      points,
      best,
      beyond,
      without_value(data, State::Failed, objective, "failed: no value", "#c1272d",
                    Layer::Mark::Crosses, foot),
      without_value(data, State::Complete, objective, "not finite", "#c1272d", Layer::Mark::Rings,
                    foot),
      without_value(data, State::Pruned, objective, "pruned without a report", "#8c8c8c",
                    Layer::Mark::Crosses, foot),
      without_value(data, State::Running, objective, "running: no value", "#009e73",
                    Layer::Mark::Points, foot),
      without_value(data, State::Waiting, objective, "waiting: no value", "#009e73",
                    Layer::Mark::Rings, foot)};
  const bool has_ground = std::any_of(layers.begin() + 4, layers.end(),
                                      [](const Layer& layer) { return !layer.x.empty(); });
  std::erase_if(layers, [](const Layer& layer) { return layer.x.empty(); });
  if (has_ground) layers.insert(layers.begin(), ground);
  return layered_chart({.title = fmt::format("History of {}", data.name),
                        .x = {.label = "trial"},
                        .y = {.label = data.objectives[objective].name},
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
