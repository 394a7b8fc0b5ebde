#include "lathe/search/narrowed_grid.h"

#include <algorithm>
#include <map>

#include "lathe/core/error.h"
#include "lathe/study/importance.h"

namespace lathe::search {
namespace {

// A parameter of the best trial and the values that good trials had, its own first.
struct Column {
  study::Parameter best;
  std::vector<double> values;
  double importance = 0;
};

std::size_t num_points(const std::vector<Column>& columns, std::size_t most) {
  std::size_t count = 1;
  for (const Column& column : columns) {
    count *= column.values.size();
    if (count > most) break;
  }
  return count;
}

bool has_children(const study::Space& space, const std::string& name) {
  return std::ranges::any_of(
      space, [&](const study::SpaceParameter& each) { return each.parent == name; });
}

}  // namespace

std::vector<std::vector<std::pair<std::string, study::Choice>>> narrowed_grid(
    const CandidateSpace& space, const std::vector<const study::History*>& histories, int most,
    double above) {
  const study::TrialRecord* best = nullptr;
  const study::History* of_best = nullptr;
  std::map<std::string, std::vector<double>> seen;
  for (const study::History* history : histories)
    for (const study::TrialRecord& trial : history->trials()) {
      if (trial.state != study::TrialState::Complete || trial.values.front() <= above) continue;
      if (best == nullptr || trial.values.front() > best->values.front()) {
        best = &trial;
        of_best = history;
      }
      for (const study::Parameter& each : trial.parameters) seen[each.name].push_back(each.value);
    }
  if (best == nullptr) fail("above {}: no complete trial is", above);

  std::map<std::string, double> importance;
  for (const auto& [name, share] : study::parameter_importance(*of_best)) importance[name] = share;
  std::vector<Column> columns;
  for (const study::Parameter& each : best->parameters) {
    Column column{.best = each, .values = {each.value}, .importance = importance[each.name]};
    std::vector<double> others = seen[each.name];
    std::ranges::sort(others);
    if (!has_children(space.parameters(), each.name))
      for (const double value : others)
        if (std::ranges::find(column.values, value) == column.values.end())
          column.values.push_back(value);
    columns.push_back(std::move(column));
  }
  while (num_points(columns, static_cast<std::size_t>(most)) > static_cast<std::size_t>(most)) {
    Column* least = nullptr;
    for (Column& column : columns)
      if (column.values.size() > 1 && (least == nullptr || column.importance < least->importance))
        least = &column;
    least->values.resize(1);
  }

  std::vector<std::vector<std::pair<std::string, study::Choice>>> points;
  const std::size_t count = num_points(columns, static_cast<std::size_t>(most));
  for (std::size_t i = 0; i < count; ++i) {
    study::Assignment point;
    std::size_t rest = i;
    for (const Column& column : columns) {
      point.push_back(column.best);
      point.back().value = column.values[rest % column.values.size()];
      rest /= column.values.size();
    }
    if (!space.is_possible(point)) continue;
    std::vector<std::pair<std::string, study::Choice>>& values = points.emplace_back();
    for (const study::Parameter& each : point)
      values.emplace_back(each.name, study::to_external(*each.distribution, each.value));
  }
  return points;
}

}  // namespace lathe::search
