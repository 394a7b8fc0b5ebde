#pragma once

#include <chrono>
#include <functional>

#include "lathe/core/interrupt.h"
#include "lathe/study/stop_rule.h"
#include "lathe/study/study.h"

namespace lathe::study {

/// Evaluates a trial and says how it ended. `should_stop`, which any thread may ask, says true when
/// the work is interrupted or somebody else has the trial by now: throw Interrupted then. Any other
/// UserError fails the trial.
using Evaluate = std::function<Outcome(Trial& trial, const ShouldStop& should_stop)>;

/// What became of a trial that was worked on.
enum class Ending {
  Told,        ///< its outcome is in
  Lost,        ///< somebody else has it; ours does not count
  HandedBack,  ///< it waits to be taken up again
};

/// A trial that was worked on, and how far the study is.
struct WorkedTrial {
  const TrialRecord& trial;
  Ending ending = Ending::Told;
  std::chrono::duration<double> time{0};
  int num_finished = 0;               ///< trials of the study that the rule counts
  const TrialRecord* best = nullptr;  ///< by the first objective; none yet
};

/// Asks, evaluates and tells until the rule or `Study::stop` says stop, or nothing is left to do.
///
/// With a lease (StudyOptions) heartbeats are sent while a trial is evaluated, and trials that
/// other workers left behind are waited for and taken up. What is thrown while a trial is
/// evaluated, other than a UserError, hands the trial back and ends the work. After each trial
/// `ended` is called.
void work(Study& study, const Evaluate& evaluate, const StopRule& rule,
          const std::function<void(const WorkedTrial&)>& ended = {});

}  // namespace lathe::study
