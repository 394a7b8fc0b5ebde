#include <algorithm>
#include <thread>

#include "lathe/core/error.h"
#include "lathe/study/study.h"

namespace lathe::study {
namespace {

using Clock = std::chrono::steady_clock;

// Between looks at what other workers left and at whether to stop.
constexpr std::chrono::milliseconds kLongestWait(250);

// Whether another worker's trial may yet be left to us: one without a lease never is.
bool has_leased(const History& history) {
  return std::ranges::any_of(history.unfinished(), [&](int number) {
    const TrialRecord& each = history.trials()[static_cast<std::size_t>(number)];
    const auto lease = each.system_attributes.find("lathe:lease");
    return each.state == TrialState::Running && lease != each.system_attributes.end() &&
           lease->second != "0";
  });
}

int num_paused(const History& history) {
  return static_cast<int>(std::ranges::count_if(history.unfinished(), [&](int number) {
    return is_paused(history.trials()[static_cast<std::size_t>(number)]);
  }));
}

// Sets a value and puts the old one back at the end of the scope.
template <typename Value>
class Temporarily {
 public:
  Temporarily(Value& place, Value value) : place_(place), before_(place) {
    place_ = std::move(value);
  }
  ~Temporarily() { place_ = std::move(before_); }
  Temporarily(const Temporarily&) = delete;
  Temporarily& operator=(const Temporarily&) = delete;

 private:
  Value& place_;
  Value before_;
};

}  // namespace

void Study::optimize(const Objective& objective, const StopRule& rule,
                     const std::vector<Callback>& callbacks) {
  const Clock::time_point start = Clock::now();
  Progress progress;
  is_stopped_ = false;
  std::optional<int> max_trials = options_.max_trials;
  // With leases every trial that was started is finished by somebody, so counting those that exist
  // keeps several workers together at the limit. Without, one left behind would count for ever.
  if (rule.trials && options_.lease.count() > 0)
    max_trials = std::min(*rule.trials, max_trials.value_or(*rule.trials));
  const Temporarily limit(options_.max_trials, max_trials);
  const auto is_over = [&] {
    if (is_stopped_ || (rule.should_stop && rule.should_stop())) return true;
    if (rule.time && Clock::now() - start >= *rule.time) return true;
    progress.update(history_);
    return progress.is_over(rule, history_);
  };
  // A paused trial counts as done until it is promoted, or a study that pauses would never end.
  const auto has_started_all = [&] {
    return rule.trials && progress.num_finished() + num_paused(history_) >= *rule.trials;
  };

  refresh();
  while (!is_over()) {
    options_.max_trials = has_started_all() ? 0 : max_trials;
    if (options_.max_trials == 0 && !pruner_->promote(history_)) break;
    std::optional<Trial> trial = ask();
    if (!trial) {
      if (options_.lease.count() == 0 || !has_leased(history_)) break;
      std::this_thread::sleep_for(std::min(options_.lease / 4, kLongestWait));
      refresh();
      continue;
    }
    Outcome outcome;
    try {
      outcome = objective(*trial);
      if (outcome.state == TrialState::Complete) require_values(outcome);
    } catch (const UserError& error) {
      outcome = {.state = TrialState::Fail, .reason = error.message()};
    } catch (...) {
      // Interrupted, or our own mistake: somebody else may finish the trial.
      release(*trial);
      throw;
    }
    if (!tell(*trial, std::move(outcome))) continue;
    for (const Callback& callback : callbacks) callback(*this, trial->record());
  }
}

}  // namespace lathe::study
