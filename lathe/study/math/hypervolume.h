#pragma once

#include <span>
#include <vector>

#include "lathe/study/math/pareto.h"

namespace lathe::study {

/// The volume of all places that at least one of the points dominates and that in turn dominate
/// `reference`. Points that are not better than the reference everywhere add nothing.
///
/// O(n log n) in two and three dimensions; beyond, the exclusive volumes of the WFG algorithm.
double hypervolume(std::span<const Losses> points, const Losses& reference);

/// What the hypervolume loses with each point.
std::vector<double> hypervolume_contributions(std::span<const Losses> points,
                                              const Losses& reference);

/// `count` points of large common hypervolume, by index in the order of choice: each time the one
/// that adds most (the first of several). At least 1 - 1/e of the best possible.
std::vector<int> select_by_hypervolume(std::span<const Losses> points, int count,
                                       const Losses& reference);

}  // namespace lathe::study
