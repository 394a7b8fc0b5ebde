#pragma once

// What the kernels share: sizes read on the device, threads and blocks, sums in a fixed order.

#include <cuda_runtime.h>

#include "lathe/engine/cuda/kernel_table.h"

namespace lathe::engine::cuda {

inline constexpr int kThreads = 256;
inline constexpr int kWarp = 32;
inline constexpr unsigned kAllLanes = 0xffffffffu;
inline constexpr int kNoHead = 0x7f7f7f7f;  ///< no position: a fill of bytes 0x7f

inline cudaStream_t stream_of(Stream* stream) {
  return reinterpret_cast<cudaStream_t>(stream);
}

/// Blocks for `count` items, `each` of them a block; loops go on with a stride of the grid.
inline unsigned blocks_for(std::int64_t count, std::int64_t each, std::int64_t most = 8192) {
  const std::int64_t blocks = (count + each - 1) / each;
  return static_cast<unsigned>(blocks < 1 ? 1 : blocks > most ? most : blocks);
}

__device__ inline std::int64_t real_size(const Extent& extent) {
  return extent.symbol == nullptr ? extent.capacity : extent.scale * *extent.symbol + extent.offset;
}

__device__ inline std::int64_t integer_at(const Integers& integers, std::int64_t index) {
  return integers.is_wide ? static_cast<const std::int64_t*>(integers.data)[index]
                          : static_cast<const std::int32_t*>(integers.data)[index];
}

__device__ inline void report(const Fault& fault) {
  if (fault.first != nullptr) atomicMin(fault.first, fault.step);
}

__device__ inline std::int64_t global_thread() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::int64_t grid_stride() {
  return static_cast<std::int64_t>(gridDim.x) * blockDim.x;
}

struct Add {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Larger {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a != a || a > b ? a : b;
  }
};

/// The same for all lanes: a butterfly has one order of additions whatever the hardware does.
template <typename T, typename Join>
__device__ T join_warp(T value, Join join) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2)
    value = join(value, __shfl_xor_sync(kAllLanes, value, distance));
  return value;
}

/// The same for all threads of a block of whole warps, at most 32 of them. `room` holds 32 values;
/// it is free again when the call returns.
template <typename T, typename Join>
__device__ T join_block(T value, T start, T* room, Join join) {
  value = join_warp(value, join);
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  if (lane == 0) room[warp] = value;
  __syncthreads();
  const int warps = blockDim.x / kWarp;
  value = join_warp(lane < warps ? room[lane] : start, join);
  __syncthreads();
  return value;
}

/// Of several items in one launch, the one that this block works on; they are in the order of their
/// `first_block`s. All threads call it, for they look at one item each: bisection would read one
/// after another.
template <typename Item>
__device__ const Item& of_this_block(const Item* items, int count) {
  const int threads = static_cast<int>(blockDim.x * blockDim.y);
  const int thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  int begun = 0;
  for (int first = 0; first < count; first += threads)
    begun += __syncthreads_count(first + thread < count &&
                                 items[first + thread].first_block <= blockIdx.x);
  return items[begun - 1];
}

/// Where element `index` of a shape lies along a walk.
__device__ inline std::int64_t place_of(std::int64_t index, int rank, const std::int64_t* dims,
                                        const Walk& walk) {
  std::int64_t place = 0;
  if (index <= 0x7fffffff) {
    auto rest = static_cast<std::uint32_t>(index);
    for (int axis = rank - 1; axis > 0; --axis) {
      const auto size = static_cast<std::uint32_t>(dims[axis]);
      const std::uint32_t whole = rest / size;
      place += (rest - whole * size) * walk.strides[axis];
      rest = whole;
    }
    return rank == 0 ? 0 : place + rest * walk.strides[0];
  }
  for (int axis = rank - 1; axis > 0; --axis) {
    place += index % dims[axis] * walk.strides[axis];
    index /= dims[axis];
  }
  return rank == 0 ? 0 : place + index * walk.strides[0];
}

}  // namespace lathe::engine::cuda
