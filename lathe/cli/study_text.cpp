#include "lathe/cli/study_text.h"

#include "lathe/cli/trial_text.h"
#include "lathe/study/objective_names.h"

namespace lathe::cli {

std::vector<std::string> direction_names(const std::vector<study::Direction>& directions) {
  std::vector<std::string> names;
  for (const study::Direction direction : directions) names.emplace_back(direction_name(direction));
  return names;
}

std::vector<std::string> objective_texts(const study::StudyRecord& study) {
  std::vector<std::string> texts = direction_names(study.directions);
  const std::vector<std::string> names = study::objective_names(study);
  for (std::size_t i = 0; i < names.size(); ++i) texts[i] += " " + names[i];
  return texts;
}

std::map<study::TrialState, int> count_states(const study::History& history) {
  std::map<study::TrialState, int> counts;
  for (const study::TrialRecord& trial : history.trials()) ++counts[trial.state];
  return counts;
}

std::string best_text(const StoredStudy& study) {
  const std::vector<int> best = study.best();
  if (best.empty()) return "-";
  if (study.record.directions.size() > 1) return fmt::format("{} on the front", best.size());
  return values_text(study.history.trials()[static_cast<std::size_t>(best[0])].values);
}

}  // namespace lathe::cli
