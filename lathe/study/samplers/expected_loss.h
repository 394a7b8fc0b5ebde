#pragma once

#include <span>
#include <vector>

#include "lathe/study/samplers/observations.h"

namespace lathe::study {

/// What a trial scored, for comparison: infinite unless it is complete and keeps the constraints.
double comparable_loss(const Observations& observations, std::size_t row);

/// What trials come to at their end, one objective: what complete ones did, and of those that were
/// given up what the reports of complete ones at the same step make likely. Those that say nothing,
/// or break constraints, are as bad as the worst that is complete. Empty where none is complete.
std::vector<double> expected_losses(const Observations& observations,
                                    std::span<const std::size_t> rows);

}  // namespace lathe::study
