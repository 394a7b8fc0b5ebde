#include "lathe/study/stop_rule.h"

namespace lathe::study {

void Progress::update(const History& history) {
  const Direction direction = history.directions().front();
  const auto trial = [&](int number) -> const TrialRecord& {
    return history.trials()[static_cast<std::size_t>(number)];
  };
  for (; num_finished_ < static_cast<int>(history.finished().size()); ++num_finished_) {
    const int number = history.finished()[static_cast<std::size_t>(num_finished_)];
    const TrialRecord& each = trial(number);
    ++num_since_best_;
    num_failed_ += each.state == TrialState::Fail;
    if (each.state != TrialState::Complete || each.values.empty() || !is_feasible(each)) continue;
    const double value = each.values.front();
    if (best_) {
      const double best_value = trial(*best_).values.front();
      if (is_better(direction, best_value, value)) continue;
      if (value == best_value) {
        // Results come in any order; the first trial of equals is the best whichever came first.
        if (number < *best_) best_ = number;
        continue;
      }
      if (!is_better(direction, value, best_value)) continue;  // NaN from another program
    }
    if (value != value) continue;
    best_ = number;
    num_since_best_ = 0;
  }
}

bool Progress::is_over(const StopRule& rule, const History& history) const {
  if (rule.trials && num_counted(rule) >= *rule.trials) return true;
  if (rule.patience && best_ && num_since_best_ >= *rule.patience) return true;
  if (!rule.target || !best_) return false;
  const double value = history.trials()[static_cast<std::size_t>(*best_)].values.front();
  return !is_better(history.directions().front(), *rule.target, value);
}

}  // namespace lathe::study
