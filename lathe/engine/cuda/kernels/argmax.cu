// The index of the largest number of each row, -1 where one is not a number: a block has a row.

#include "lathe/engine/cuda/kernels/kernels.cuh"
#include "lathe/engine/cuda/kernels/launch.cuh"

namespace lathe::engine::cuda {
namespace {

constexpr int kArgmaxThreads = 1024;

struct Place {
  float value;
  std::int32_t index;
};
// Of equals the first; what is not a number stays.
struct LargerFirst {
  __device__ Place operator()(Place a, Place b) const {
    return b.value > a.value || (b.value == a.value && b.index < a.index) || isnan(b.value) ? b : a;
  }
};
__device__ Place join_places(Place own) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2)
    own = LargerFirst()(own, {__shfl_xor_sync(kAllLanes, own.value, distance),
                              __shfl_xor_sync(kAllLanes, own.index, distance)});
  return own;
}

__global__ void __launch_bounds__(kArgmaxThreads) argmax_kernel(ArgmaxArgs args) {
  __shared__ Place room[kWarp];
  const std::int64_t real = real_size(args.rows);
  for (std::int64_t row = blockIdx.x; row < args.rows.capacity; row += gridDim.x) {
    if (row >= real) {
      if (threadIdx.x == 0) args.y[row] = 0;
      continue;
    }
    const float* const x = args.x + row * args.n;
    // Everybody begins with the first.
    Place best{x[0], 0};
    for (std::int64_t i = threadIdx.x; i < args.n; i += kArgmaxThreads) {
      const float value = x[i];
      if (value > best.value || isnan(value)) best = {value, static_cast<std::int32_t>(i)};
    }
    best = join_places(best);
    if (threadIdx.x % kWarp == 0) room[threadIdx.x / kWarp] = best;
    __syncthreads();
    if (threadIdx.x < kWarp) {
      best = join_places(room[threadIdx.x]);
      if (threadIdx.x == 0) args.y[row] = isnan(best.value) ? -1 : best.index;
    }
    __syncthreads();
  }
}

}  // namespace

void argmax(const ArgmaxArgs& args, Stream* stream) {
  if (args.rows.capacity == 0) return;
  argmax_kernel<<<blocks_for(args.rows.capacity, 1), kArgmaxThreads, 0, stream_of(stream)>>>(args);
}

}  // namespace lathe::engine::cuda
