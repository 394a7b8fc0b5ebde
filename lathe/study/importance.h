#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lathe/study/history.h"

namespace lathe::study {

struct ImportanceOptions {
  /// Which objective, counted from 0; nothing: all together, by the front that a trial lies in.
  std::optional<int> objective = 0;
  double best_share = 0.1;  ///< which trials count as good
};

/// How much it matters where a parameter is, as shares of one, the largest first (PED-ANOVA,
/// Watanabe and others 2023): how far the values of the good trials lie from those of all trials,
/// by Pearson's divergence. Linear in the number of trials.
///
/// A parameter that only some trials have is judged among those and weighs as much as it is there.
/// Empty without at least four complete trials that differ.
std::vector<std::pair<std::string, double>> parameter_importance(
    const History& history, const ImportanceOptions& options = {});

}  // namespace lathe::study
