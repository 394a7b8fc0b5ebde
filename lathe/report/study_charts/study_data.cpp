#include "lathe/report/study_charts/study_data.h"

#include <algorithm>

#include "lathe/report/plot_range.h"

namespace lathe::report {
namespace {

constexpr std::size_t kFewest = 20;

}  // namespace

AxisScale ParameterColumn::scale(int num_ticks) const {
  PlotRange range;
  for (const double value : values) range.include(value, axis);
  return range.scale(axis, num_ticks, false);
}

std::vector<double> StudyData::column(std::size_t index) const {
  std::vector<double> values;
  for (const std::size_t trial : rows) values.push_back(trials[trial].values[index]);
  return values;
}

const ParameterColumn* StudyData::find(std::string_view parameter) const {
  for (const ParameterColumn& each : parameters)
    if (each.axis.label == parameter) return &each;
  return nullptr;
}

std::vector<const ParameterColumn*> StudyData::choose_parameters(std::size_t most) const {
  std::vector<const ParameterColumn*> columns;
  for (const std::string& each : chosen)
    if (const ParameterColumn* found = find(each)) columns.push_back(found);
  if (!chosen.empty()) return columns;
  for (const auto& [parameter, share] : importance)
    if (const ParameterColumn* found = find(parameter)) columns.push_back(found);
  for (const ParameterColumn& each : parameters)
    if (std::ranges::find(columns, &each) == columns.end()) columns.push_back(&each);
  if (columns.size() > most) columns.resize(most);
  return columns;
}

double ObjectiveRange::clamp(double value) const {
  return std::clamp(value, low(), high());
}

ObjectiveRange objective_range(const std::vector<double>& values, bool is_maximized) {
  ObjectiveRange range{.is_maximized = is_maximized};
  if (values.empty()) return range;
  std::vector<double> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  if (is_maximized) std::reverse(sorted.begin(), sorted.end());
  range.best = sorted.front();
  range.worst = sorted.back();
  if (sorted.size() < kFewest) return range;  // each of a few counts
  // Three times as far from the best as nine in ten are: beyond it there are strays only.
  const double most = sorted[(sorted.size() - 1) * 9 / 10];
  const double limit = range.best + 3 * (most - range.best);
  const auto is_beyond = [&](double value) { return is_maximized ? value < limit : value > limit; };
  if (most == range.best || !is_beyond(range.worst)) return range;
  const auto first = std::find_if(sorted.begin(), sorted.end(), is_beyond);
  range.num_beyond = static_cast<std::size_t>(sorted.end() - first);
  range.worst = *(first - 1);
  return range;
}

}  // namespace lathe::report
