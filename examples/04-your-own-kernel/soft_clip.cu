#include <cuda_runtime.h>

#include "soft_clip.h"

namespace {

__global__ void soft_clip_kernel(const float* x, float* y, std::int64_t count, float limit) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride)
    y[i] = limit * tanhf(x[i] / limit);
}

}  // namespace

// Launches and returns: Lathe asks the GPU for errors, and synchronizes when it needs results.
void launch_soft_clip(const float* x, float* y, std::int64_t count, float limit, void* stream) {
  if (count == 0) return;
  constexpr int kThreads = 256;
  const std::int64_t blocks = (count + kThreads - 1) / kThreads;
  soft_clip_kernel<<<static_cast<unsigned>(blocks < 8192 ? blocks : 8192), kThreads, 0,
                     static_cast<cudaStream_t>(stream)>>>(x, y, count, limit);
}
