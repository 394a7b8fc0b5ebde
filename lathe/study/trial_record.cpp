#include "lathe/study/trial_record.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "lathe/core/error.h"
#include "lathe/study/json_text.h"

namespace lathe::study {
namespace {

constexpr std::array<std::string_view, 5> kStateNames = {"RUNNING", "COMPLETE", "PRUNED", "FAIL",
                                                         "WAITING"};

std::vector<double> numbers_of(const TrialRecord& trial, std::string_view key) {
  const auto found = trial.system_attributes.find(key);
  if (found == trial.system_attributes.end()) return {};
  return with_place(fmt::format("trial {}: attribute \"{}\"", trial.number, key), [&] {
    const nlohmann::json list = parse_json(found->second);
    if (list.is_null()) return std::vector<double>();
    if (!list.is_array()) fail("expected a list of numbers, not {}", found->second);
    std::vector<double> result;
    for (const nlohmann::json& each : list) {
      if (!each.is_number()) fail("expected a list of numbers, not {}", found->second);
      result.push_back(each.get<double>());
    }
    return result;
  });
}

}  // namespace

std::string_view name(TrialState state) {
  return kStateNames.at(static_cast<std::size_t>(state));
}

std::optional<TrialState> parse_trial_state(std::string_view name) {
  const auto found = std::ranges::find(kStateNames, name);
  if (found == kStateNames.end()) return {};
  return static_cast<TrialState>(found - kStateNames.begin());
}

const Parameter* TrialRecord::find(std::string_view parameter) const {
  for (const Parameter& each : parameters)
    if (each.name == parameter) return &each;
  return nullptr;
}

void apply(const TrialChange& change, TrialRecord& record, Time now) {
  if (record.parameters.empty()) {
    record.parameters = change.parameters;
  } else {
    for (const Parameter& each : change.parameters) {
      const auto same = [&](const Parameter& known) { return known.name == each.name; };
      const auto found = std::ranges::find_if(record.parameters, same);
      if (found == record.parameters.end())
        record.parameters.push_back(each);
      else
        *found = each;
    }
  }
  for (const auto& [step, value] : change.intermediate_values)
    record.intermediate_values.emplace(step, value);
  for (const auto& [key, value] : change.user_attributes) record.user_attributes[key] = value;
  for (const auto& [key, value] : change.system_attributes) record.system_attributes[key] = value;
  if (!change.state) return;
  record.state = *change.state;
  record.values = change.values;
  if (is_finished(record.state)) record.complete = now;
}

bool is_paused(const TrialRecord& trial) {
  if (trial.state != TrialState::Waiting) return false;
  const auto found = trial.system_attributes.find("lathe:paused");
  return found != trial.system_attributes.end() && found->second == "true";
}

Time now() {
  return std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
}

std::string report_key(int step) {
  return fmt::format("lathe:report:{}", step);
}

std::vector<double> report_at(const TrialRecord& trial, int step) {
  const auto found = trial.intermediate_values.find(step);
  if (found == trial.intermediate_values.end()) return {};
  std::vector<double> result = {found->second};
  const std::vector<double> others = numbers_of(trial, report_key(step));
  result.insert(result.end(), others.begin(), others.end());
  return result;
}

std::vector<double> constraints(const TrialRecord& trial) {
  return numbers_of(trial, "constraints");
}

double violation(const TrialRecord& trial) {
  double total = 0;
  for (const double each : constraints(trial)) {
    if (std::isnan(each)) return std::numeric_limits<double>::infinity();
    total += std::max(each, 0.0);
  }
  return total;
}

}  // namespace lathe::study
