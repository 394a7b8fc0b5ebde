// A matrix of floats the other way around, by tiles in shared memory.

#include "lathe/engine/cuda/kernels/kernels.cuh"
#include "lathe/engine/cuda/kernels/launch.cuh"

namespace lathe::engine::cuda {
namespace {

constexpr int kTile = 32, kLines = kThreads / kTile;  // lines that all threads copy at once

__global__ void __launch_bounds__(kThreads) transpose_kernel(TransposeArgs args) {
  __shared__ float tile[kTile][kTile + 1];  // one more: columns are in different banks
  const int across = static_cast<int>(threadIdx.x) % kTile;
  const int line = static_cast<int>(threadIdx.x) / kTile;
  const std::int64_t row = std::int64_t{blockIdx.x} * kTile;
  const std::int64_t column = std::int64_t{blockIdx.y} * kTile;
#pragma unroll
  for (int i = line; i < kTile; i += kLines)
    if (row + i < args.rows && column + across < args.columns)
      tile[i][across] = args.x[(row + i) * args.columns + column + across];
  __syncthreads();
#pragma unroll
  for (int i = line; i < kTile; i += kLines)
    if (column + i < args.columns && row + across < args.rows)
      args.y[(column + i) * args.rows + row + across] = tile[across][i];
}

}  // namespace

void transpose(const TransposeArgs& args, Stream* stream) {
  if (args.rows == 0 || args.columns == 0) return;
  const dim3 grid(static_cast<unsigned>((args.rows + kTile - 1) / kTile),
                  static_cast<unsigned>((args.columns + kTile - 1) / kTile));
  transpose_kernel<<<grid, kThreads, 0, stream_of(stream)>>>(args);
}

}  // namespace lathe::engine::cuda
