// Sums that other kernels have left in parts, added in order.

#include "lathe/engine/cuda/kernels/kernels.cuh"
#include "lathe/engine/cuda/kernels/launch.cuh"

namespace lathe::engine::cuda {
namespace {

// 32 threads have four sums each, eight shares of the parts beside each other.
constexpr int kShares = 8;
__global__ void add_parts_kernel(AddPartsArgs args) {
  __shared__ float room[kShares][kPartsBlock];
  const SummedParts sum = of_this_block(args.sums, args.count);
  const std::int64_t first = (blockIdx.x - sum.first_block) * kPartsBlock;
  const int lane = threadIdx.x, share = threadIdx.y;
  const int begin = sum.num_parts * share / kShares, end = sum.num_parts * (share + 1) / kShares;
  const std::int64_t at = first + lane * 4;
  float total[4] = {};
  if (sum.count % 4 == 0 && at < sum.count) {
#pragma unroll 4
    for (int part = begin; part < end; ++part) {
      const float4 four = *reinterpret_cast<const float4*>(sum.parts + part * sum.count + at);
      total[0] += four.x;
      total[1] += four.y;
      total[2] += four.z;
      total[3] += four.w;
    }
  } else {
    for (int part = begin; part < end; ++part)
      for (int j = 0; j < 4; ++j)
        if (at + j < sum.count) total[j] += sum.parts[part * sum.count + at + j];
  }
  for (int j = 0; j < 4; ++j) room[share][lane * 4 + j] = total[j];
  __syncthreads();
  const int column = share * kWarp + lane;
  if (column >= kPartsBlock || first + column >= sum.count) return;
  float y = 0;
  for (int s = 0; s < kShares; ++s) y += room[s][column];
  sum.y[first + column] = y;
}

}  // namespace

void add_parts(const AddPartsArgs& args, Stream* stream) {
  if (args.num_blocks == 0) return;
  add_parts_kernel<<<static_cast<unsigned>(args.num_blocks), dim3(kWarp, kShares), 0,
                     stream_of(stream)>>>(args);
}

}  // namespace lathe::engine::cuda
