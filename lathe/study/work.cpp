#include "lathe/study/work.h"

#include <algorithm>
#include <thread>

#include "lathe/core/error.h"
#include "lathe/study/heartbeats.h"

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

}  // namespace

// One call of `work`.
class StudyWorker {
 public:
  StudyWorker(Study& study, const Evaluate& evaluate, const StopRule& rule,
              const std::function<void(const WorkedTrial&)>& ended)
      : study_(study),
        evaluate_(evaluate),
        rule_(rule),
        ended_(ended),
        lease_(study.options_.lease),
        max_before_(study.options_.max_trials),
        heartbeats_(study.storage_, lease_) {
    // With leases every trial that was started is finished by somebody, so counting those that
    // exist keeps several workers together at the limit. Without, one left behind would count for
    // ever.
    study_.is_stopped_ = false;
  }
  ~StudyWorker() { study_.options_.max_trials = max_before_; }
  StudyWorker(const StudyWorker&) = delete;
  StudyWorker& operator=(const StudyWorker&) = delete;

  void run() {
    study_.refresh();
    while (!is_over()) {
      study_.options_.max_trials = has_started_all() ? 0 : most_trials();
      if (study_.options_.max_trials == 0 && !study_.pruner_->promote(study_.history_)) return;
      if (std::optional<Trial> trial = study_.ask()) {
        idle_since_.reset();
        finish(*trial);
      } else if (!wait_for_others()) {
        return;
      }
    }
  }

 private:
  bool is_interrupted() const { return rule_.should_stop && rule_.should_stop(); }

  bool is_over() {
    if (study_.is_stopped_ || is_interrupted()) return true;
    if (rule_.time && Clock::now() - start_ >= *rule_.time) return true;
    progress_.update(study_.history_);
    return progress_.is_over(rule_, study_.history_);
  }

  // How many trials the study may have by now; nothing: any number.
  std::optional<int> most_trials() const {
    if (!rule_.trials || lease_.count() == 0) return max_before_;
    const int most = *rule_.trials + (rule_.counts_failed ? 0 : progress_.num_failed());
    return std::min(most, max_before_.value_or(most));
  }

  // A paused trial counts as done until it is promoted, or a study that pauses would never end.
  bool has_started_all() const {
    return rule_.trials &&
           progress_.num_counted(rule_) + num_paused(study_.history_) >= *rule_.trials;
  }

  // Nothing is left to start, but a trial in other hands comes back if those are dead: that shows
  // within a lease. Whoever is alive after two will finish it.
  bool wait_for_others() {
    if (lease_.count() == 0 || !has_leased(study_.history_)) return false;
    if (!idle_since_) idle_since_ = Clock::now();
    if (Clock::now() - *idle_since_ > 2 * lease_) return false;
    std::this_thread::sleep_for(std::min(lease_ / 4, kLongestWait));
    study_.refresh();
    return true;
  }

  void finish(Trial& trial) {
    const Clock::time_point start = Clock::now();
    const auto end = [&](Ending ending) {
      heartbeats_.rest();
      if (!ended_) return;
      if (lease_.count() > 0) study_.refresh();  // others work, too
      progress_.update(study_.history_);
      ended_({.trial = trial.record(),
              .ending = ending,
              .time = Clock::now() - start,
              .num_finished = progress_.num_counted(rule_),
              .best = best()});
    };
    heartbeats_.watch(trial.record().id, trial.owner());
    Outcome outcome;
    try {
      outcome = evaluate_(trial, [this] { return heartbeats_.is_lost() || is_interrupted(); });
      if (outcome.state == TrialState::Complete) study_.require_values(outcome);
    } catch (const UserError& error) {
      outcome = {.state = TrialState::Fail, .reason = error.message()};
    } catch (const Interrupted&) {
      if (heartbeats_.is_lost() && !is_interrupted()) return end(Ending::Lost);
      hand_back(trial);
      end(Ending::HandedBack);
      throw;
    } catch (...) {
      hand_back(trial);
      heartbeats_.rest();
      throw;
    }
    end(study_.tell(trial, std::move(outcome)) ? Ending::Told : Ending::Lost);
  }

  // Somebody else may finish it.
  void hand_back(Trial& trial) {
    try {
      study_.release(trial);
    } catch (const UserError&) {
      // The storage is gone; the trial becomes free when its lease runs out.
    }
  }

  const TrialRecord* best() const {
    if (!progress_.best()) return nullptr;
    return &study_.history_.trials()[static_cast<std::size_t>(*progress_.best())];
  }

  Study& study_;
  const Evaluate& evaluate_;
  const StopRule& rule_;
  const std::function<void(const WorkedTrial&)>& ended_;
  const std::chrono::milliseconds lease_;
  const std::optional<int> max_before_;
  const Clock::time_point start_ = Clock::now();
  Progress progress_;
  std::optional<Clock::time_point> idle_since_;
  Heartbeats heartbeats_;
};

void work(Study& study, const Evaluate& evaluate, const StopRule& rule,
          const std::function<void(const WorkedTrial&)>& ended) {
  StudyWorker(study, evaluate, rule, ended).run();
}

}  // namespace lathe::study
