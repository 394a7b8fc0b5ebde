// What follows a product of the library's, in a launch of its own.

#include "lathe/engine/cuda/kernels/kernels.cuh"
#include "lathe/engine/cuda/kernels/product_epilogue.cuh"

namespace lathe::engine::cuda {
namespace {

// A thread has four neighbours of a row at a time.
__global__ void __launch_bounds__(kThreads) epilogue_kernel(EpilogueArgs args) {
  const auto n = static_cast<unsigned>(args.n), groups = (n + 3) / 4;
  const bool is_whole = n % 4 == 0;
  const std::int64_t real = real_size(args.rows);
  for (std::int64_t i = global_thread(); i < args.rows.capacity * groups; i += grid_stride()) {
    const std::int64_t row = i <= 0x7fffffff ? static_cast<unsigned>(i) / groups : i / groups;
    const auto column = static_cast<int>(i - row * groups) * 4;
    const int left = static_cast<int>(n) - column, there = left < 4 ? left : 4;
    const std::int64_t place = row * n + column;
    float y[4] = {};
    if (row < real) {
      const float4 x = four_numbers(args.x, args.x_as == Number::BF16, place, there, is_whole);
      float sums[4] = {x.x, x.y, x.z, x.w};
      if (args.bias != nullptr) {
        const float4 four =
            four_numbers(args.bias, args.bias_as == Number::BF16, column, there, is_whole);
        const float bias[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[j] += args.is_rounded ? round_to_bf16(bias[j]) : bias[j];
      }
#pragma unroll
      for (int j = 0; j < 4; ++j)
        y[j] = sums[j] = args.is_rounded ? round_to_bf16(sums[j]) : sums[j];
      map_four(args.map, sums, y);
      if (args.residual != nullptr) {
        const float4 residual = four_floats(args.residual + place, there, is_whole);
        y[0] += residual.x;
        y[1] += residual.y;
        y[2] += residual.z;
        y[3] += residual.w;
      }
    }
    if (args.y_half != nullptr) put_four(args.y_half + place, y, there, is_whole);
    if (args.y != nullptr) put_four(args.y + place, y, there, is_whole);
  }
}

// Most of them: a map of bfloat16, to bfloat16. A thread has eight neighbours at a time; rows
// follow each other without a gap, so that only where the real ones end counts.
template <Map kMap>
__global__ void __launch_bounds__(kThreads)
    map_halves_kernel(const uint4* x, uint4* y, Map map, Extent rows, std::int64_t n) {
  const std::int64_t real = real_size(rows) * n / 8, all = rows.capacity * n / 8;
  for (std::int64_t i = global_thread(); i < all; i += grid_stride()) {
    uint4 eight = make_uint4(0, 0, 0, 0);
    if (i < real) {
      eight = x[i];
      for (std::uint32_t* pair : {&eight.x, &eight.y, &eight.z, &eight.w}) {
        const float low = __uint_as_float(*pair << 16);
        const float high = __uint_as_float(*pair & 0xffff0000u);
        if constexpr (kMap == Map::GeluErf)
          *pair = to_bf16_pair(apply(kMap, low, 0), apply(kMap, high, 0));
        else
          *pair = to_bf16_pair(mapped(map, low), mapped(map, high));
      }
    }
    y[i] = eight;
  }
}

}  // namespace

void epilogue(const EpilogueArgs& args, Stream* stream) {
  const std::int64_t count = args.rows.capacity * args.n;
  const cudaStream_t on = stream_of(stream);
  if (count == 0) return;
  const bool is_map = args.x_as == Number::BF16 && args.y == nullptr && args.bias == nullptr &&
                      args.residual == nullptr && args.n % 8 == 0;
  if (is_map) {
    const auto kernel = args.map == Map::GeluErf ? map_halves_kernel<Map::GeluErf>
                                                 : map_halves_kernel<Map::Identity>;
    kernel<<<blocks_for(count / 8, kThreads, 1 << 20), kThreads, 0, on>>>(
        static_cast<const uint4*>(args.x), reinterpret_cast<uint4*>(args.y_half), args.map,
        args.rows, args.n);
    return;
  }
  epilogue_kernel<<<blocks_for((count + 3) / 4, kThreads), kThreads, 0, on>>>(args);
}

}  // namespace lathe::engine::cuda
