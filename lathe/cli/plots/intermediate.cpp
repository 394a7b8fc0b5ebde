// What trials reported on the way: would it have been right to prune earlier, or later?
#include <fmt/format.h>

#include <cmath>

#include "lathe/cli/study_plots.h"
#include "lathe/report/layered_chart.h"

namespace lathe::cli {
namespace {

using report::Layer;

// A line of its own for each trial: what is not finite breaks the line.
void add_trial(Layer& layer, const study::TrialRecord& trial, const ObjectiveRange& range) {
  for (const auto& [step, value] : trial.intermediate_values) {
    layer.x.push_back(step);
    layer.y.push_back(range.is_within(value) ? value : NAN);
  }
  layer.x.push_back(NAN);
  layer.y.push_back(NAN);
}

}  // namespace

std::string draw_intermediate(const PlotSource& source) {
  std::vector<double> all;
  const study::TrialRecord* best = nullptr;
  const bool is_maximized = source.direction() == study::Direction::Maximize;
  std::size_t lines = 0;
  for (const study::TrialRecord& trial : source.history->trials()) {
    if (trial.intermediate_values.empty()) continue;
    ++lines;
    for (const auto& [step, value] : trial.intermediate_values)
      if (std::isfinite(value)) all.push_back(value);
  }
  for (const study::TrialRecord* trial : source.table.trials) {
    if (trial->intermediate_values.empty()) continue;
    const double value = trial->values[source.objective];
    if (best == nullptr || (is_maximized ? value > best->values[source.objective]
                                         : value < best->values[source.objective]))
      best = trial;
  }
  const ObjectiveRange range = objective_range(all, source.direction());
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
  for (const study::TrialRecord& trial : source.history->trials())
    if (!trial.intermediate_values.empty())
      add_trial(&trial == best                               ? top
                : trial.state == study::TrialState::Complete ? complete
                                                             : pruned,
                trial, range);
  if (best != nullptr) top.name = fmt::format("best, trial {}", best->number);
  std::vector<Layer> layers;
  for (const Layer& layer : {pruned, complete, top})
    if (!layer.x.empty()) layers.push_back(layer);
  return report::layered_chart({.title = fmt::format("Intermediate values of {}", source.name),
                                .x = {.label = "step"},
                                .y = {.label = "reported value" + beyond_text(range.num_beyond)}},
                               layers);
}

}  // namespace lathe::cli
