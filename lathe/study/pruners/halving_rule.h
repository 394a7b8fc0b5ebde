#pragma once

#include <functional>
#include <optional>

#include "lathe/study/pruners/pruner.h"

namespace lathe::study {

/// Asynchronous successive halving: at step min_resource * factor^(rate + r) a trial enters rung r
/// and goes on only if it is among the best 1/factor of all that ever entered it.
///
/// A rung's values are kept with the trials, as Optuna does (`completed_rung_0`), so every worker
/// sees the same rung.
struct HalvingRule {
  int min_resource = 1;
  int factor = 4;
  int rate = 0;       ///< rungs left out at the bottom
  int bootstrap = 0;  ///< so many enter a rung before one may leave it
  /// Trials that are not good enough wait for worse ones to arrive instead of being given up, and
  /// nobody goes on for want of rivals.
  bool can_pause = false;

  /// Which trials share the rungs, by number.
  using IsRival = std::function<bool(int)>;

  Verdict judge(const History& history, const TrialRecord& trial, Attributes& system_attributes,
                const IsRival& is_rival) const;
  /// The best of the paused trials that belong to the best of their rung by now; higher rungs
  /// first.
  std::optional<int> promote(const History& history, const IsRival& is_rival) const;
};

/// The last step of the first complete trial that reported anything, or nothing yet.
std::optional<int> longest_known_step(const History& history);

}  // namespace lathe::study
