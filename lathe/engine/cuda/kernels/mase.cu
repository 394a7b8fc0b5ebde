// MASE's quantizers of single values and of blocks, from the header that the CPU's come from.

#include "lathe/engine/cuda/kernels/kernels.cuh"
#include "lathe/engine/cuda/kernels/launch.cuh"
#include "lathe/numerics/mase/quantizers.h"

namespace lathe::engine::cuda {
namespace {

constexpr int kTilesOfGroup = kThreads / kWarp;

// NaN does not count for a largest magnitude, infinity does.
struct LargerNumber {
  __device__ float operator()(float a, float b) const { return a < b ? b : a; }
};

__global__ void mase_elements_kernel(const __grid_constant__ MaseArgs args) {
  const std::int64_t real = real_size(args.rows) * args.columns;
  const std::int64_t all = args.rows.capacity * args.columns;
  numerics::with_mase_element(args.table, [&](const auto& quantizer) {
    for (std::int64_t i = global_thread(); i < all; i += grid_stride())
      args.y[i] = i < real ? quantizer(args.x[i]) : 0;
  });
}

// Tiles of `height` rows that begin at a row, one a warp.
struct Band {
  const MaseArgs& args;
  std::int64_t row, height;

  __device__ std::int64_t width(std::int64_t column) const {
    return args.columns - column < args.block ? args.columns - column : args.block;
  }
  // Calls body(index of an element) for this lane's part of a tile.
  template <typename Body>
  __device__ void for_elements(std::int64_t column, const Body& body) const {
    // A tile is small, and quotients of 64 bits are slow.
    const auto columns = static_cast<std::uint32_t>(width(column));
    const std::uint32_t count = static_cast<std::uint32_t>(height) * columns;
    for (std::uint32_t i = threadIdx.x % kWarp; i < count; i += kWarp)
      body((row + i / columns) * args.columns + column + i % columns);
  }
  __device__ float largest(std::int64_t column) const {
    float result = 0;
    for_elements(column,
                 [&](std::int64_t i) { result = LargerNumber()(result, fabsf(args.x[i])); });
    return join_warp(result, LargerNumber());
  }
  // The smallest that is not 0 of all tiles beside each other, or 1.
  __device__ float stand_in() const {
    float smallest = 0;
    for (std::int64_t column = 0; column < args.columns; column += args.block) {
      const float found = largest(column);
      if (found > 0 && (smallest == 0 || found < smallest)) smallest = found;
    }
    return smallest > 0 ? smallest : 1;
  }
};

__global__ void mase_blocks_kernel(const __grid_constant__ MaseArgs args) {
  const std::int64_t real = real_size(args.rows);
  const std::int64_t tiles = (args.columns + args.block - 1) / args.block;
  const std::int64_t all = (args.rows.capacity + args.block_rows - 1) / args.block_rows * tiles;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kTilesOfGroup;
  for (std::int64_t index =
           static_cast<std::int64_t>(blockIdx.x) * kTilesOfGroup + threadIdx.x / kWarp;
       index < all; index += stride) {
    const std::int64_t row = index / tiles * args.block_rows;
    const std::int64_t column = index % tiles * args.block;
    const std::int64_t rest = args.rows.capacity - row;
    const Band band{args, row, rest < args.block_rows ? rest : args.block_rows};
    if (row >= real) {  // only where a tile is of one row
      band.for_elements(column, [&](std::int64_t i) { args.y[i] = 0; });
      continue;
    }
    float largest = band.largest(column);
    if (largest == 0) largest = band.stand_in();
    numerics::with_mase_block(args.table, largest, [&](const auto& quantizer) {
      band.for_elements(column, [&](std::int64_t i) { args.y[i] = quantizer(args.x[i]); });
    });
  }
}

}  // namespace

void quantize_mase(const MaseArgs& args, Stream* stream) {
  const std::int64_t all = args.rows.capacity * args.columns;
  if (all == 0) return;
  const cudaStream_t on = stream_of(stream);
  if (args.has_blocks) {
    const std::int64_t tiles = (args.rows.capacity + args.block_rows - 1) / args.block_rows *
                               ((args.columns + args.block - 1) / args.block);
    mase_blocks_kernel<<<blocks_for(tiles, kTilesOfGroup), kThreads, 0, on>>>(args);
  } else {
    mase_elements_kernel<<<blocks_for(all, kThreads), kThreads, 0, on>>>(args);
  }
}

}  // namespace lathe::engine::cuda
