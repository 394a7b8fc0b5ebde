#pragma once

#include "lathe/engine/cuda/cuda_plan.h"

namespace lathe::engine {

/// Puts the plan's steps in the order they run in and cuts that into launches: as few as their
/// groups allow, because a launch costs more than most of them compute.
void schedule(CudaPlan& plan);

}  // namespace lathe::engine
