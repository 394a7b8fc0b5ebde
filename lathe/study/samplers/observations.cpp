#include "lathe/study/samplers/observations.h"

#include <algorithm>
#include <cmath>

#include "lathe/study/math/infinity.h"
#include "lathe/study/math/pareto.h"
#include "lathe/study/uniform_value.h"

namespace lathe::study {

namespace {

constexpr double kAbsent = std::numeric_limits<double>::quiet_NaN();

// What a storage holds may have been written by anybody: an index outside the list of choices or
// the logarithm of a negative number must not get into a model.
bool is_usable(const Distribution& distribution, double value) {
  if (const std::size_t count = num_choices(distribution); count > 0)
    return value >= 0 && value < static_cast<double>(count) && value == std::floor(value);
  return std::isfinite(numeric_range(distribution)->from_internal(value));
}

bool equal(const DistributionPtr& a, const DistributionPtr& b) {
  return a == b || *a == *b;
}

// Rank and loss of a trial; nothing when it has no result to learn from.
std::optional<Observations::Row> make_row(const TrialRecord& trial,
                                          const std::vector<Direction>& directions) {
  Observations::Row row{.number = trial.number};
  const double sign = directions.front() == Direction::Maximize ? -1 : 1;
  switch (trial.state) {
    case TrialState::Complete:
      if (trial.values.size() != directions.size()) return {};
      row.rank = -kInfinity;
      row.loss = sign * trial.values.front();
      if (directions.size() > 1) row.losses = to_losses(trial.values, directions);
      break;
    case TrialState::Pruned:
      if (directions.size() > 1) return {};  // reports of several objectives are not comparable
      if (trial.intermediate_values.empty()) {
        row.rank = 1;
      } else {
        const auto& [step, value] = *trial.intermediate_values.rbegin();
        row.rank = -step;
        row.loss = std::isnan(value) ? kInfinity : sign * value;
      }
      break;
    case TrialState::Running:
      if (directions.size() > 1) return {};
      row.rank = kInfinity;
      row.loss = kInfinity;
      row.is_running = true;
      break;
    default:
      return {};
  }
  if (std::isnan(row.loss)) row.loss = kInfinity;
  if (directions.size() == 1 && !row.is_running)
    for (const auto& [step, value] : trial.intermediate_values)
      if (std::isfinite(value)) row.reports.emplace_back(step, sign * value);
  return row;
}

}  // namespace

std::optional<std::size_t> Observations::find(std::string_view name) const {
  const auto found = column_by_name_.find(name);
  if (found == column_by_name_.end()) return {};
  return found->second;
}

std::size_t Observations::column_of(const Parameter& parameter) {
  const auto found = column_by_name_.find(parameter.name);
  if (found != column_by_name_.end()) return found->second;
  columns_.push_back({.name = parameter.name, .distribution = parameter.distribution});
  columns_.back().values.assign(rows_.size(), kAbsent);
  column_by_name_.emplace(parameter.name, columns_.size() - 1);
  return columns_.size() - 1;
}

bool Observations::append(const TrialRecord& trial, const std::vector<Direction>& directions) {
  std::optional<Row> row = make_row(trial, directions);
  if (!row) return false;
  const auto attribute = trial.system_attributes.lower_bound("constraints");
  if (attribute != trial.system_attributes.end() && attribute->first.starts_with("constraints")) {
    has_constraints_ = true;
    row->violation = violation(trial);
  } else {
    row->violation = kInfinity;  // counts only if there are constraints
  }
  if (row->is_running) row->violation = kInfinity;
  const std::size_t index = rows_.size();
  rows_.push_back(std::move(*row));
  for (Column& column : columns_) column.values.push_back(kAbsent);

  std::vector<std::size_t> present;
  for (const Parameter& parameter : trial.parameters) {
    if (rows_[index].is_running && !column_by_name_.contains(parameter.name)) continue;
    const std::size_t id = column_of(parameter);
    Column& column = columns_[id];
    if (!is_usable(*column.distribution, parameter.value)) continue;
    column.values[index] = parameter.value;
    if (rows_[index].is_running) continue;
    ++column.num_present;
    if (!equal(parameter.distribution, column.distribution)) column.is_fixed = false;
    present.push_back(id);
  }
  if (!rows_[index].is_running) refine_groups(present);
  return true;
}

void Observations::refine_groups(std::span<const std::size_t> present) {
  std::vector<bool> is_present(columns_.size(), false);
  for (const std::size_t id : present) is_present[id] = true;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const auto middle =
        std::stable_partition(groups_[i].begin(), groups_[i].end(),
                              [&](std::size_t id) { return static_cast<bool>(is_present[id]); });
    for (auto id = groups_[i].begin(); id != middle; ++id) is_present[*id] = false;
    if (middle == groups_[i].begin() || middle == groups_[i].end()) continue;
    std::vector<std::size_t> rest(middle, groups_[i].end());
    groups_[i].erase(middle, groups_[i].end());
    groups_.insert(groups_.begin() + static_cast<std::ptrdiff_t>(++i), std::move(rest));
  }
  std::vector<std::size_t> fresh;
  for (const std::size_t id : present)
    if (is_present[id]) fresh.push_back(id);
  if (!fresh.empty()) groups_.push_back(std::move(fresh));
}

void Observations::order_rows() {
  by_number_ = finished_by_number_;
  for (std::size_t row = num_finished_; row < rows_.size(); ++row) {
    const auto place = std::upper_bound(
        by_number_.begin(), by_number_.end(), rows_[row].number,
        [&](int number, std::size_t other) { return number < rows_[other].number; });
    by_number_.insert(place, row);
  }
}

void Observations::update(const History& history, int own_number, bool with_running) {
  const auto finished = history.finished();
  if (num_read_ == finished.size() && own_number == own_number_) return;
  own_number_ = own_number;
  if (!with_running && num_read_ == finished.size()) return;

  // The running trials of last time are read anew.
  rows_.resize(num_finished_);
  for (Column& column : columns_) column.values.resize(num_finished_);
  const bool is_first = num_finished_ == 0;
  for (; num_read_ < finished.size(); ++num_read_) {
    const TrialRecord& trial = history.trials()[static_cast<std::size_t>(finished[num_read_])];
    if (!append(trial, history.directions())) continue;
    const std::size_t row = num_finished_++;
    const auto place = std::upper_bound(
        finished_by_number_.begin(), finished_by_number_.end(), trial.number,
        [&](int number, std::size_t other) { return number < rows_[other].number; });
    finished_by_number_.insert(place, row);
  }
  if (is_first && num_finished_ > 0) {
    const int last = rows_[finished_by_number_.back()].number;
    for (const Parameter& parameter : history.trials()[static_cast<std::size_t>(last)].parameters)
      shared_.push_back(*find(parameter.name));
  }
  std::erase_if(shared_, [&](std::size_t id) {
    return !columns_[id].is_fixed || columns_[id].num_present < num_finished_;
  });
  if (with_running) {
    for (const int number : history.unfinished()) {
      const TrialRecord& trial = history.trials()[static_cast<std::size_t>(number)];
      if (number != own_number && trial.state == TrialState::Running)
        append(trial, history.directions());
    }
  }
  order_rows();
  ++version_;
}

}  // namespace lathe::study
