// Objectives against each other, with the trials that nothing beats in all of them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lathe/report/chart_grid.h"
#include "lathe/report/layered_chart.h"
#include "lathe/report/study_charts/study_charts.h"

namespace lathe::report {
namespace {

std::string draw_pair(const StudyData& data, std::size_t x, std::size_t y, int width, int height) {
  const std::vector<double> xs = data.column(x), ys = data.column(y);
  const ObjectiveRange x_range = objective_range(xs, data.objectives[x].is_maximized);
  const ObjectiveRange y_range = objective_range(ys, data.objectives[y].is_maximized);
  Layer others{.name = "dominated",
               .color = "#9db8cc",
               .size = point_size(xs.size()) * 0.9,
               .opacity = point_opacity(xs.size())};
  Layer front{.name = "Pareto front", .color = "#d55e00", .size = xs.size() <= 1000 ? 4.5 : 3.5};
  std::vector<std::pair<double, double>> corners;
  std::size_t beyond = 0;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    Layer& layer = data.is_front[i] ? front : others;
    // The front is shown whole, however far it reaches.
    if (!data.is_front[i] && (!x_range.is_within(xs[i]) || !y_range.is_within(ys[i]))) {
      ++beyond;
      continue;
    }
    layer.x.push_back(xs[i]);
    layer.y.push_back(ys[i]);
    layer.tooltips.push_back(data.row(i).tooltip);
    if (data.is_front[i]) corners.emplace_back(xs[i], ys[i]);
  }
  std::vector<Layer> layers = {others};
  if (data.objectives.size() == 2) {
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
    return fmt::format("{}, to {}", data.objectives[objective].name,
                       data.objectives[objective].is_maximized ? "maximize" : "minimize");
  };
  return layered_chart({.title = fmt::format("Pareto front of {}: {} of {} trials", data.name,
                                             corners.size(), xs.size()),
                        .x = {.label = label(x) + beyond_text(beyond)},
                        .y = {.label = label(y)},
                        .width = width,
                        .height = height},
                       layers);
}

}  // namespace

std::string pareto_chart(const StudyData& data) {
  if (data.objectives.size() == 2) return draw_pair(data, 0, 1, 720, 480);
  std::vector<std::string> charts;
  for (std::size_t i = 0; i < data.objectives.size(); ++i)
    for (std::size_t j = i + 1; j < data.objectives.size(); ++j)
      charts.push_back(draw_pair(data, i, j, 480, 360));
  return chart_grid({.title = fmt::format("Pareto front of {}", data.name),
                     .columns = 2,
                     .cell_width = 480,
                     .cell_height = 360},
                    charts);
}

}  // namespace lathe::report
