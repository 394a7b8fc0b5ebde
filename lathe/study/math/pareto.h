#pragma once

#include <span>
#include <vector>

#include "lathe/study/trial_record.h"

namespace lathe::study {

/// A point of objective space in which less is better in every coordinate.
using Losses = std::vector<double>;

/// The values of a trial with maximized objectives negated. A NaN becomes the worst there is.
Losses to_losses(std::span<const double> values, std::span<const Direction> directions);

/// Whether `a` is nowhere worse than `b` and somewhere better.
bool dominates(std::span<const double> a, std::span<const double> b);

/// The front of each point: 0 for those that nobody dominates, 1 for those that only the first
/// front dominates, and so on. Equal points share a front.
///
/// With `violations` (one per point, 0 where every constraint holds) all points that hold come
/// before all that do not, and those are ordered by violation alone.
std::vector<int> non_dominated_ranks(std::span<const Losses> points,
                                     std::span<const double> violations = {});

/// The indices of front 0 among points that violate nothing, in their given order.
std::vector<int> non_dominated(std::span<const Losses> points,
                               std::span<const double> violations = {});

/// How alone each point of one front is: the sum over objectives of the gap between its two
/// neighbours, as a share of the front's extent. Infinite at the ends.
std::vector<double> crowding_distances(std::span<const Losses> front);

}  // namespace lathe::study
