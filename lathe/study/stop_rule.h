#pragma once

#include <chrono>
#include <optional>

#include "lathe/core/interrupt.h"
#include "lathe/study/history.h"

namespace lathe::study {

/// When `work` and `optimize` stop; whichever comes first.
struct StopRule {
  std::optional<int> trials = {};  ///< finished or paused in the whole study
  bool counts_failed = true;       ///< trials that failed are among them
  std::optional<std::chrono::duration<double>> time = {};
  std::optional<double> target = {};  ///< first objective reaches it
  std::optional<int> patience = {};   ///< so many trials without a better one
  ShouldStop should_stop = {};        ///< interrupts the work; a trial is handed back
};

/// How far a study has come by its first objective, kept up to date trial by trial.
class Progress {
 public:
  /// Reads the trials that finished since the last call.
  void update(const History& history);
  int num_finished() const { return num_finished_; }
  int num_failed() const { return num_failed_; }
  /// How many of the rule's trials there are.
  int num_counted(const StopRule& rule) const {
    return num_finished_ - (rule.counts_failed ? 0 : num_failed_);
  }
  /// The number of the best complete and feasible trial; the first of equals.
  std::optional<int> best() const { return best_; }
  /// How many trials finished after the best one was learned of.
  int num_since_best() const { return num_since_best_; }
  /// Whether trials, target or patience end the study. (Time is the caller's.)
  bool is_over(const StopRule& rule, const History& history) const;

 private:
  int num_finished_ = 0, num_failed_ = 0;
  std::optional<int> best_;
  int num_since_best_ = 0;
};

/// Whether `a` is a better value than `b`.
inline bool is_better(Direction direction, double a, double b) {
  return direction == Direction::Minimize ? a < b : a > b;
}

}  // namespace lathe::study
