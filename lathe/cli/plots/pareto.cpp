// Objectives against each other, with the trials that nothing beats in all of them.
#include "lathe/study/math/pareto.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lathe/cli/study_plots.h"
#include "lathe/report/chart_grid.h"
#include "lathe/report/layered_chart.h"

namespace lathe::cli {
namespace {

using report::Layer;

std::string draw_pair(const PlotSource& source, const std::vector<bool>& is_front, std::size_t x,
                      std::size_t y, int width, int height) {
  const auto& directions = source.history->directions();
  const std::vector<double>&xs = source.table.objectives[x], &ys = source.table.objectives[y];
  const ObjectiveRange x_range = objective_range(xs, directions[x]);
  const ObjectiveRange y_range = objective_range(ys, directions[y]);
  Layer others{.name = "dominated",
               .color = "#9db8cc",
               .size = point_size(xs.size()) * 0.9,
               .opacity = point_opacity(xs.size())};
  Layer front{.name = "Pareto front", .color = "#d55e00", .size = xs.size() <= 1000 ? 4.5 : 3.5};
  std::vector<std::pair<double, double>> corners;
  std::size_t beyond = 0;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    Layer& layer = is_front[i] ? front : others;
    // The front is shown whole, however far it reaches.
    if (!is_front[i] && (!x_range.is_within(xs[i]) || !y_range.is_within(ys[i]))) {
      ++beyond;
      continue;
    }
    layer.x.push_back(xs[i]);
    layer.y.push_back(ys[i]);
    layer.tooltips.push_back(trial_tooltip(*source.table.trials[i]));
    if (is_front[i]) corners.emplace_back(xs[i], ys[i]);
  }
  std::vector<Layer> layers = {others};
  if (directions.size() == 2) {
    Layer line{.mark = Layer::Mark::Line, .color = "#d55e00", .size = 2};
    std::sort(corners.begin(), corners.end());
    for (const auto& [a, b] : corners) {
      line.x.push_back(a);
      line.y.push_back(b);
    }
    layers.push_back(line);
  }
  layers.push_back(front);
  const auto label = [&](std::size_t objective) {
    return fmt::format(
        "{}, to {}", source.objective_name(objective),
        directions[objective] == study::Direction::Minimize ? "minimize" : "maximize");
  };
  return report::layered_chart({.title = fmt::format("Pareto front of {}: {} of {} trials",
                                                     source.name, corners.size(), xs.size()),
                                .x = {.label = label(x) + beyond_text(beyond)},
                                .y = {.label = label(y)},
                                .width = width,
                                .height = height},
                               layers);
}

}  // namespace

std::string draw_pareto(const PlotSource& source) {
  const auto& directions = source.history->directions();
  std::vector<study::Losses> points;
  std::vector<double> violations;
  for (const study::TrialRecord* trial : source.table.trials) {
    points.push_back(study::to_losses(trial->values, directions));
    violations.push_back(study::violation(*trial));
  }
  std::vector<bool> is_front(points.size(), false);
  for (const int index : study::non_dominated(points, violations))
    is_front[static_cast<std::size_t>(index)] = true;
  if (directions.size() == 2) return draw_pair(source, is_front, 0, 1, 720, 480);
  std::vector<std::string> charts;
  for (std::size_t i = 0; i < directions.size(); ++i)
    for (std::size_t j = i + 1; j < directions.size(); ++j)
      charts.push_back(draw_pair(source, is_front, i, j, 480, 360));
  return report::chart_grid({.title = fmt::format("Pareto front of {}", source.name),
                             .columns = 2,
                             .cell_width = 480,
                             .cell_height = 360},
                            charts);
}

}  // namespace lathe::cli
