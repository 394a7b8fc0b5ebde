#include "lathe/search/known_results.h"

namespace lathe::search {

void KnownResults::add(const std::string& study, const study::TrialRecord& trial) {
  if (trial.state != study::TrialState::Complete && trial.state != study::TrialState::Pruned)
    return;
  KnownResult result{.from = fmt::format("{} {}", study, trial.number),
                     .reports = trial.intermediate_values,
                     .attributes = trial.user_attributes};
  if (trial.state == study::TrialState::Complete) result.accuracy = trial.values.front();
  const std::string key = to_json(space_.candidate(trial.parameters)).dump();
  const std::scoped_lock lock(mutex_);
  const auto [known, is_new] = results_.emplace(key, result);
  if (!is_new && result.reports.size() > known->second.reports.size())
    known->second = std::move(result);
}

std::optional<KnownResult> KnownResults::find(const Candidate& candidate) const {
  const std::string key = to_json(candidate).dump();
  const std::scoped_lock lock(mutex_);
  const auto found = results_.find(key);
  return found == results_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace lathe::search
