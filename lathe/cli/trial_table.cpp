#include "lathe/cli/trial_table.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lathe/cli/trial_text.h"
#include "lathe/report/plot_range.h"

namespace lathe::cli {
namespace {

constexpr std::size_t kFewest = 20;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

report::Axis axis_of(const study::Parameter& parameter) {
  report::Axis axis{.label = parameter.name};
  if (const auto* real = std::get_if<study::FloatDistribution>(&*parameter.distribution))
    axis.is_logarithmic = real->log;
  if (const auto* whole = std::get_if<study::IntDistribution>(&*parameter.distribution))
    axis.is_logarithmic = whole->log;
  if (const auto* list = std::get_if<study::CategoricalDistribution>(&*parameter.distribution))
    for (const study::Choice& choice : list->choices) axis.categories.push_back(value_text(choice));
  return axis;
}

bool is_drawn(const study::TrialRecord& trial, std::size_t num_objectives) {
  return trial.state == study::TrialState::Complete && trial.values.size() == num_objectives &&
         std::all_of(trial.values.begin(), trial.values.end(),
                     [](double value) { return std::isfinite(value); });
}

}  // namespace

report::AxisScale ParameterColumn::scale(int num_ticks) const {
  report::PlotRange range;
  for (const double value : values) range.include(value, axis);
  return range.scale(axis, num_ticks, false);
}

const ParameterColumn* TrialTable::find(std::string_view parameter) const {
  for (const ParameterColumn& column : parameters)
    if (column.axis.label == parameter) return &column;
  return nullptr;
}

TrialTable tabulate(const study::History& history) {
  const std::size_t num_objectives = history.directions().size();
  TrialTable table;
  table.objectives.resize(num_objectives);
  for (const study::TrialRecord& trial : history.trials()) {
    if (!is_drawn(trial, num_objectives)) continue;
    for (std::size_t i = 0; i < num_objectives; ++i) table.objectives[i].push_back(trial.values[i]);
    for (const study::Parameter& parameter : trial.parameters) {
      auto column =
          std::find_if(table.parameters.begin(), table.parameters.end(),
                       [&](const auto& each) { return each.axis.label == parameter.name; });
      if (column == table.parameters.end())
        column = table.parameters.insert(column, {.axis = axis_of(parameter)});
      column->values.resize(table.trials.size(), kNone);
      column->values.push_back(parameter.value);
    }
    table.trials.push_back(&trial);
  }
  for (ParameterColumn& column : table.parameters) column.values.resize(table.trials.size(), kNone);
  return table;
}

double ObjectiveRange::clamp(double value) const {
  return std::clamp(value, low(), high());
}

ObjectiveRange objective_range(const std::vector<double>& values, study::Direction direction) {
  ObjectiveRange range;
  range.is_maximized = direction == study::Direction::Maximize;
  if (values.empty()) return range;
  std::vector<double> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  if (range.is_maximized) std::reverse(sorted.begin(), sorted.end());
  range.best = sorted.front();
  range.worst = sorted.back();
  if (sorted.size() < kFewest) return range;  // each of a few counts
  // Three times as far from the best as nine in ten are: beyond it there are strays only.
  const double most = sorted[(sorted.size() - 1) * 9 / 10];
  const double limit = range.best + 3 * (most - range.best);
  const auto is_beyond = [&](double value) {
    return range.is_maximized ? value < limit : value > limit;
  };
  if (most == range.best || !is_beyond(range.worst)) return range;
  const auto first = std::find_if(sorted.begin(), sorted.end(), is_beyond);
  range.num_beyond = static_cast<std::size_t>(sorted.end() - first);
  range.worst = *(first - 1);
  return range;
}

}  // namespace lathe::cli
