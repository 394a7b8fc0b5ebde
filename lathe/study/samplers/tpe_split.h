#pragma once

#include <cstddef>
#include <vector>

#include "lathe/study/samplers/observations.h"

namespace lathe::study {

/// The two halves of TPE's question: what do the best trials have in common that the others lack.
struct Split {
  std::vector<std::size_t> below;  ///< rows of the best
  std::vector<std::size_t> above;  ///< all other rows, by number
  /// How much each of the best counts; empty: by age.
  std::vector<double> below_weights = {};
};

/// Takes the `num_below` best rows. Trials that keep the constraints come before those that do not,
/// complete before pruned ones, running ones last. Of several objectives the fronts count, and of
/// the front that does not fit whole the points of largest common hypervolume;
/// `weigh_by_hypervolume` then weighs each by what the hypervolume would lose without it. Trials
/// before `first_number` are left out of both halves.
Split split(const Observations& observations, std::size_t num_below, bool weigh_by_hypervolume,
            int first_number = 0);

}  // namespace lathe::study
