#pragma once

// From the sums of a tile, which lie in the shared memory of the blocks that share its depth, to
// the results: bias, residual, activation and rounding.

#include "lathe/engine/cuda/arguments/convolution.h"
#include "lathe/engine/cuda/kernels/attention_tensor.cuh"
#include "lathe/engine/cuda/kernels/maps.cuh"

namespace lathe::engine::cuda {

/// What few layers have: kept out of the way of what most have.
static __device__ __noinline__ float apply_seldom(Map map, float x) {
  return apply(map, x, 0);
}
__device__ inline float apply_map(Map map, float x) {
  if (map == Map::Identity) return x;
  if (map == Map::Relu) return x < 0 ? 0.0f : x;
  return apply_seldom(map, x);
}

__device__ inline void add_eight(const float* from, float (&sums)[8]) {
  const float4 low = reinterpret_cast<const float4*>(from)[0];
  const float4 high = reinterpret_cast<const float4*>(from)[1];
  sums[0] += low.x, sums[1] += low.y, sums[2] += low.z, sums[3] += low.w;
  sums[4] += high.x, sums[5] += high.y, sums[6] += high.z, sums[7] += high.w;
}
__device__ inline void add_eight(const std::uint16_t* from, float (&sums)[8]) {
  const uint4 words = *reinterpret_cast<const uint4*>(from);
  const std::uint32_t all[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    sums[2 * i] += __uint_as_float(all[i] << 16);
    sums[2 * i + 1] += __uint_as_float(all[i] & 0xffff0000u);
  }
}

__device__ inline float4 read_of_block(const float* from, int block) {
  float4 result = make_float4(0, 0, 0, 0);
#if __CUDA_ARCH__ >= 900
  unsigned there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_address(from)), "r"(block));
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(result.x), "=f"(result.y), "=f"(result.z), "=f"(result.w)
               : "r"(there)
               : "memory");
#endif
  return result;
}
__device__ inline void meet_parts(int parts) {
#if __CUDA_ARCH__ >= 900
  if (parts > 1) {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
    return;
  }
#endif
  __syncthreads();
}

/// The sums of eight columns over all parts, which lie in the blocks' shared memory.
__device__ inline void read_sums(const float* from, int parts, float (&sums)[8]) {
#pragma unroll
  for (int i = 0; i < 8; ++i) sums[i] = 0;
  if (parts == 1) return add_eight(from, sums);
  for (int part = 0; part < parts; ++part) {
    const float4 low = read_of_block(from, part), high = read_of_block(from + 4, part);
    sums[0] += low.x, sums[1] += low.y, sums[2] += low.z, sums[3] += low.w;
    sums[4] += high.x, sums[5] += high.y, sums[6] += high.z, sums[7] += high.w;
  }
}

template <Precision P>
__device__ void write_one(const ConvolutionArgs& args, std::int64_t at, float value) {
  if (args.y_half != nullptr) args.y_half[at] = bf16_bits(value);
  if (args.y != nullptr) args.y[at] = P == Precision::Bf16 ? round_to_bf16(value) : value;
}

/// Eight columns of a row, all of which are there and lie side by side.
template <Precision P>
__device__ void write_eight(const ConvolutionArgs& args, std::int64_t row, int column,
                            float (&sums)[8]) {
  const std::int64_t at = row * args.columns + column;
  if (args.bias != nullptr) add_eight(args.bias + column, sums);
  if (args.residual != nullptr) {
    if (args.residual_as == Number::BF16)
      add_eight(static_cast<const std::uint16_t*>(args.residual) + at, sums);
    else
      add_eight(static_cast<const float*>(args.residual) + at, sums);
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) sums[i] = apply_map(args.map, sums[i]);
  if constexpr (P == Precision::Bf16) {
    if (args.y_half != nullptr)
      *reinterpret_cast<uint4*>(args.y_half + at) =
          make_uint4(to_bf16_pair(sums[0], sums[1]), to_bf16_pair(sums[2], sums[3]),
                     to_bf16_pair(sums[4], sums[5]), to_bf16_pair(sums[6], sums[7]));
#pragma unroll
    for (int i = 0; i < 8; ++i) sums[i] = round_to_bf16(sums[i]);
  }
  if (args.y == nullptr) return;
  reinterpret_cast<float4*>(args.y + at)[0] = make_float4(sums[0], sums[1], sums[2], sums[3]);
  reinterpret_cast<float4*>(args.y + at)[1] = make_float4(sums[4], sums[5], sums[6], sums[7]);
}

/// The sums of a tile, which lie in shared memory, to where they belong; of the rows of this part.
template <typename Shape>
__device__ void write_tile(const ConvolutionArgs& args, const float* tile, int first_row,
                           int first_column, int part, int parts) {
  constexpr Precision P = Shape::kPrecision;
  const int plane = args.y_height * args.y_width, num_rows = args.count * plane;
  const int own = Shape::kRows / parts, begin = part * own;
  const bool is_even = args.columns % 8 == 0 && !args.are_planes;
  constexpr int kEights = Shape::kColumns / 8;
  for (int i = static_cast<int>(threadIdx.x); i < own * kEights; i += Shape::kThreads) {
    // Neighbours are beside each other in memory.
    const int row = begin + (args.are_planes ? i % own : i / kEights);
    const int eight = args.are_planes ? i / own : i % kEights;
    const int column = first_column + eight * 8;
    if (first_row + row >= num_rows || column >= args.columns) continue;
    float sums[8];
    read_sums(tile + row * Shape::kSumStride + eight * 8, parts, sums);
    if (is_even) {
      write_eight<P>(args, first_row + row, column, sums);
      continue;
    }
    const std::int64_t image = (first_row + row) / plane;
    const std::int64_t pixel = first_row + row - image * plane;
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      if (column + e >= args.columns) continue;
      const std::int64_t last = std::int64_t{first_row + row} * args.columns + column + e;
      const std::int64_t at =
          args.are_planes ? (image * args.columns + column + e) * plane + pixel : last;
      float value = sums[e];
      if (args.bias != nullptr) value += args.bias[column + e];
      if (args.residual != nullptr)
        value += element_at(args.residual, args.residual_as == Number::BF16, last);
      write_one<P>(args, at, apply_map(args.map, value));
    }
  }
}

}  // namespace lathe::engine::cuda
