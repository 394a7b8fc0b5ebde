#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lathe/cli/study_arguments.h"
#include "lathe/study/work.h"

namespace lathe::cli {

/// How `lathe study run` works on a study.
struct WorkerOptions {
  StudyArguments study;
  std::vector<std::string> command;
  std::optional<study::Space> space = {};
  std::chrono::milliseconds lease{30'000};
  study::StopRule rule = {};
  std::vector<std::string> objectives = {};  ///< fields of a JSON result; empty: the study's names
  int max_failures = 20;                     ///< in a row; 0: never give up
};

/// What the workers of one process have in common: what became of their trials, and when to stop.
class WorkLog {
 public:
  WorkLog(bool is_quiet, std::optional<int> trials) : is_quiet_(is_quiet), trials_(trials) {}

  /// Counts a trial and tells a person how it ended.
  void ended(const study::WorkedTrial& worked);

  /// Ends the work of all when their present trials are finished.
  void stop() { is_stopped_ = true; }
  bool is_stopped() const { return is_stopped_; }

  int num_handed_back() const { return num_handed_back_; }
  int failures_in_a_row() const { return failures_in_a_row_; }
  /// Whether some trial ended, and every one that did failed.
  bool has_only_failed() const;
  std::string last_failure() const;
  /// How many trials ended in each state.
  std::map<study::TrialState, int> counts() const;

 private:
  const bool is_quiet_;
  const std::optional<int> trials_;
  std::atomic<bool> is_stopped_{false};
  std::atomic<int> num_handed_back_{0}, failures_in_a_row_{0};
  mutable std::mutex mutex_;  // guards what follows, and the lines written
  std::map<study::TrialState, int> counts_;
  std::string last_failure_;
};

/// Runs the program for one trial after another (`study::work`) until the rule, the log or an
/// interruption says stop. Belongs to one thread.
void work_on_study(const WorkerOptions& options, WorkLog& log);

}  // namespace lathe::cli
