#pragma once

#include <optional>
#include <span>
#include <vector>

#include "lathe/study/history.h"
#include "lathe/study/math/pareto.h"

namespace lathe::study {

/// What a pruner compares: the last step that a trial reported, or nothing.
std::optional<int> last_step(const TrialRecord& trial);

/// A report with less meaning better. Nothing where the trial did not report one number per
/// objective at that step; a NaN stays one.
std::optional<Losses> report_loss(const TrialRecord& trial, int step,
                                  const std::vector<Direction>& directions);

bool has_nan(const Losses& losses);

/// One number for each point by which the points can be ordered, less being better. Of one
/// objective it is the loss itself. Of several it is the front that the point lies in and, within
/// the front, less for lonely points: half a front at most.
std::vector<double> rank_losses(std::span<const Losses> points);

/// When a pruner looks at a trial: not before `warmup` steps, then once in every `interval` steps,
/// later if nothing was reported in time.
struct JudgedSteps {
  int warmup = 0;
  int interval = 1;
  /// Whether the last report of the trial is one to be judged.
  bool includes_last(const TrialRecord& trial) const;
};

}  // namespace lathe::study
