#include "lathe/search/trial_results.h"

#include <cmath>
#include <limits>

namespace lathe::search {

using study::TrialState;

std::optional<double> score_of(const study::TrialRecord& trial) {
  if ((trial.state != TrialState::Complete && trial.state != TrialState::Pruned) ||
      trial.values.empty())
    return std::nullopt;
  return trial.values.front();
}

std::optional<double> number_of(const study::TrialRecord& trial, std::string_view name) {
  const auto found = trial.user_attributes.find(name);
  if (found == trial.user_attributes.end()) return std::nullopt;
  const nlohmann::json value = nlohmann::json::parse(found->second, nullptr, false);
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

bool is_of_family(const SearchResult::Study& study) {
  return study.sampler.starts_with(family_study(""));
}

std::vector<double> best_so_far(const study::History& history) {
  std::vector<double> best;
  for (const study::TrialRecord& trial : history.trials()) {
    const std::optional<double> accuracy =
        trial.state == TrialState::Complete ? score_of(trial) : std::nullopt;
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    // Of two the one that is a number.
    best.push_back(std::fmax(best.empty() ? kNone : best.back(), accuracy.value_or(kNone)));
  }
  return best;
}

std::vector<double> curve_of(const SearchResult& result, const char* attribute) {
  std::vector<double> values;
  for (const SearchResult::Study& study : result.studies)
    for (const study::TrialRecord& trial : study.history.trials())
      if (const auto value = number_of(trial, attribute);
          value && trial.state == TrialState::Complete && number_of(trial, kCompressed))
        values.push_back(*value);
  return values;
}

}  // namespace lathe::search
