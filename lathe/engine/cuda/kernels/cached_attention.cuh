#pragma once

// What attention to caches shares: four features a lane, a head the lanes of a part of a warp.

#include "lathe/engine/cuda/kernels/launch.cuh"

namespace lathe::engine::cuda {

/// One token of one sequence (is_single_token).
void attend_token(const CachedAttentionArgs& args, Stream* stream);

__device__ inline float4 times(float4 a, float by) {
  return {a.x * by, a.y * by, a.z * by, a.w * by};
}
__device__ inline float4 plus_times(float4 sum, float4 a, float by) {
  return {fmaf(a.x, by, sum.x), fmaf(a.y, by, sum.y), fmaf(a.z, by, sum.z), fmaf(a.w, by, sum.w)};
}
__device__ inline float dot(float4 a, float4 b) {
  return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, a.x * b.x)));
}

/// The sums over the parts of a warp, of kLanes lanes each, in all of them.
template <int kLanes>
__device__ void join_parts(float& total, float4& sum) {
#pragma unroll
  for (int distance = kWarp / 2; distance >= kLanes; distance /= 2) {
    total += __shfl_xor_sync(kAllLanes, total, distance);
    sum.x += __shfl_xor_sync(kAllLanes, sum.x, distance);
    sum.y += __shfl_xor_sync(kAllLanes, sum.y, distance);
    sum.z += __shfl_xor_sync(kAllLanes, sum.z, distance);
    sum.w += __shfl_xor_sync(kAllLanes, sum.w, distance);
  }
}

/// Four features of what the warps have found together: the largest score of each, and its sums of
/// weights and of weighted values.
template <int kWarps, int kLanes>
__device__ float4 joined(const float (&tops)[kWarps], const float (&totals)[kWarps],
                         const float4 (&values)[kWarps][kLanes], int place) {
  float highest = tops[0], weights = 0;
  for (int w = 1; w < kWarps; ++w) highest = fmaxf(highest, tops[w]);
  float4 sum = {0, 0, 0, 0};
  for (int w = 0; w < kWarps; ++w) {
    const float share = expf(tops[w] - highest);
    weights += totals[w] * share;
    sum = plus_times(sum, values[w][place], share);
  }
  return {sum.x / weights, sum.y / weights, sum.z / weights, sum.w / weights};
}

}  // namespace lathe::engine::cuda
