#pragma once

#include <cstddef>
#include <span>

#include "lathe/study/samplers/tpe_model.h"

namespace lathe::study {

/// The index of the point that a Gaussian process, taught with the trials of the model's two
/// halves, expects to improve most on the best of them. There is one objective.
std::size_t most_promising(std::span<const Assignment> points, const Space& space,
                           const TpeModel& model);

}  // namespace lathe::study
