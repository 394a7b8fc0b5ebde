// Rows whose smallest magnitudes become 0, a warp for each.

#include "lathe/engine/cuda/kernels/kernels.cuh"
#include "lathe/engine/cuda/kernels/launch.cuh"
#include "lathe/numerics/codecs/float_bits.h"

namespace lathe::engine::cuda {
namespace {

constexpr int kRowsOfGroup = kThreads / kWarp;
constexpr int kMagnitudeBits = 31;

// Bits in the order of magnitudes; what is no number is the largest.
__device__ std::uint32_t magnitude_bits(float x) {
  const std::uint32_t bits = numerics::bits_of(x) & ~numerics::kSignBit;
  return bits > numerics::kInfinityBits ? numerics::kInfinityBits : bits;
}

__global__ void prune_values_kernel(PruneValuesArgs args) {
  const std::int64_t real = real_size(args.rows);
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kRowsOfGroup;
  const int lane = threadIdx.x % kWarp;
  for (std::int64_t row =
           static_cast<std::int64_t>(blockIdx.x) * kRowsOfGroup + threadIdx.x / kWarp;
       row < args.rows.capacity; row += stride) {
    const float* const x = args.x + row * args.columns;
    const float* const from = args.from + row * args.columns;
    float* const y = args.y + row * args.columns;
    if (row >= real) {
      for (std::int64_t i = lane; i < args.columns; i += kWarp) y[i] = 0;
      continue;
    }
    // The last magnitude that goes, bit by bit from the highest: `left` of those that begin like it
    // go, the rest of them is larger.
    std::uint32_t last = 0;
    std::int64_t left = args.count;
    for (int bit = kMagnitudeBits - 1; bit >= 0; --bit) {
      int smaller = 0;
      for (std::int64_t i = lane; i < args.columns; i += kWarp)
        smaller += magnitude_bits(x[i]) >> bit == last >> bit ? 1 : 0;
      smaller = join_warp(smaller, Add());
      if (smaller >= left) continue;
      left -= smaller;
      last |= std::uint32_t{1} << bit;
    }
    // `left` of those as large as the last go, by index.
    std::int64_t equal_before = 0;
    for (std::int64_t begin = 0; begin < args.columns; begin += kWarp) {
      const std::int64_t i = begin + lane;
      const bool is_there = i < args.columns;
      const std::uint32_t magnitude = is_there ? magnitude_bits(x[i]) : 0;
      const unsigned equal = __ballot_sync(kAllLanes, is_there && magnitude == last);
      const int rank = __popc(equal & ((1u << lane) - 1));
      const bool goes = magnitude < last || (magnitude == last && equal_before + rank < left);
      if (is_there) y[i] = goes ? 0 : from[i];
      equal_before += __popc(equal);
    }
  }
}

}  // namespace

void prune_values(const PruneValuesArgs& args, Stream* stream) {
  if (args.rows.capacity == 0) return;
  prune_values_kernel<<<blocks_for(args.rows.capacity, kRowsOfGroup), kThreads, 0,
                        stream_of(stream)>>>(args);
}

}  // namespace lathe::engine::cuda
