#pragma once

// The random numbers of dropout, as their definition draws them.

#include "lathe/engine/cuda/kernels/launch.cuh"
#include "lathe/ops/dropout_mask.h"

namespace lathe::engine::cuda {

/// `random` is {seed low word, seed high word, step}.
__device__ inline ops::DropoutStream stream_of(const std::int32_t* random, std::uint32_t site) {
  return ops::dropout_stream(random[0], random[1], random[2], site);
}

}  // namespace lathe::engine::cuda
