#pragma once

// Attention by tensor cores: a block has 64 queries of one head, a warp 16 of them. Where there are
// few blocks, two groups of four warps take every second tile of keys each and are joined at the
// end.

#include "lathe/engine/cuda/kernels/attention_tensor.cuh"

namespace lathe::engine::cuda {

template <typename Products, int D, int Groups>
inline constexpr int kForwardBytes =
    static_cast<int>(sizeof(typename Products::Element)) * kTile * D * (1 + 4 * Groups);

/// Which weights of a warp's 16 queries by 64 keys dropout keeps. A lane draws four bytes: those of
/// its two rows for every fourth run of eight keys; `of(n)` gathers what run n needs.
struct KeptWeights {
  std::uint32_t own;
  int lane;

  __device__ KeptWeights(const KeptKeys& kept, int query, int k_begin, int of_lane)
      : own(0), lane(of_lane) {
    if (kept.threshold == 0) return;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      own |= kept.bits(query + lane / 4 + i % 2 * 8, k_begin + (lane % 4 + i / 2 * 4) * 8)
             << (8 * i);
  }
  /// Bits 0 to 3 for the lane's four numbers.
  __device__ std::uint32_t of(int n) const {
    const std::uint32_t word = __shfl_sync(kAllLanes, own, (lane & ~3) | (n & 3));
    const std::uint32_t rows = word >> (16 * (n / 4)) >> (lane % 4 * 2);
    return (rows & 3u) | (rows >> 6 & 12u);
  }
};

template <typename Products, int D, int Groups>
__global__ void __launch_bounds__(kTensorThreads* Groups) tensor_forward(AttentionArgs args) {
  using Element = typename Products::Element;
  constexpr int kSteps = D / Products::kStep, kRuns = kTile / 8;
  extern __shared__ uint4 chunks[];
  Element* const queries = reinterpret_cast<Element*>(chunks);
  const int group = static_cast<int>(threadIdx.x) / kTensorThreads;
  const int thread = static_cast<int>(threadIdx.x) % kTensorThreads;
  const int lane = thread % kWarp, warp = thread / kWarp;
  Element* const own = queries + (1 + 4 * group) * kTile * D;  // two times keys and values

  const AttentionShape& shape = args.shape;
  const bool is_bf16 = shape.elements == Number::BF16;
  const std::int64_t width = static_cast<std::int64_t>(shape.heads) * shape.d;
  clear_rows_of(shape, args.y, shape.queries, width, width);
  const Place place = find_place(shape, blockIdx.x, false);
  if (place.sequence < 0) return;
  const int head = static_cast<int>(blockIdx.y);
  const HeadPlace at = head_place(shape, place, head);
  const int tiles = tiles_of(keys_seen(shape, place, place.begin + kTile));
  const KeptKeys kept(shape, place, head);
  const float scale = shape.scale * kLog2E;
  const auto load = [&](int tile) {
    Element* const to = own + tile / Groups % 2 * 2 * kTile * D;
    if (tile < tiles) {
      load_tile<Products, D, kTile>(shape.k, is_bf16, at.k, at.k_stride, tile * kTile, place.lk,
                                    shape.d, thread, kTensorThreads, to);
      load_tile<Products, D, kTile>(shape.v, is_bf16, at.k, at.k_stride, tile * kTile, place.lk,
                                    shape.d, thread, kTensorThreads, to + kTile * D);
    }
    close_copies();
  };

  constexpr int kThreadsOfBlock = kTensorThreads * Groups;
  constexpr int kChunksOfTile = kTile * D * static_cast<int>(sizeof(Element)) / 16;
  load_tile<Products, D, kTile>(shape.q, is_bf16, at.q, at.q_stride, place.begin, place.lq, shape.d,
                                static_cast<int>(threadIdx.x), kThreadsOfBlock, queries);
  close_copies();
  load(group);
  await_copies<1>();
  Products::round_tile(queries, kChunksOfTile, static_cast<int>(threadIdx.x), kThreadsOfBlock);
  __syncthreads();
  Fragment q[kSteps];
#pragma unroll
  for (int step = 0; step < kSteps; ++step)
    load_left<Products, D>(queries, warp * 16, step, lane, q[step]);

  Accumulator sums[D / 8] = {};
  float highest[2] = {-INFINITY, -INFINITY}, total[2] = {0, 0};
  const int first_query = place.begin + warp * 16 + lane / 4;
  for (int tile = group; tile < tiles; tile += Groups) {
    const int k_begin = tile * kTile;
    Element* const keys = own + tile / Groups % 2 * 2 * kTile * D;
    await_copies<0>();
    Products::round_tile(keys, 2 * kChunksOfTile, thread, kTensorThreads);
    meet<kTensorThreads>(1 + group);
    load(tile + Groups);
    Accumulator score[kRuns] = {};
#pragma unroll
    for (int step = 0; step < kSteps; ++step)
      add_step<Products, D, kRuns>(q[step], keys, step, lane, score);
    if (is_plain(shape, place, place.begin, k_begin, kTile)) {
#pragma unroll
      for (int n = 0; n < kRuns; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) score[n][i] *= scale;
    } else {
#pragma unroll
      for (int n = 0; n < kRuns; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int query = first_query + i / 2 * 8, key = k_begin + n * 8 + lane % 4 * 2 + i % 2;
          score[n][i] = key >= place.lk                       ? -INFINITY
                        : is_masked(shape, place, query, key) ? kMasked
                                                              : score[n][i] * scale;
        }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float most = highest[half];
#pragma unroll
      for (int n = 0; n < kRuns; ++n)
        most = fmaxf(most, fmaxf(score[n][2 * half], score[n][2 * half + 1]));
      most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, 1));
      most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, 2));
      const float shrink = power_of_two(highest[half] - most);
      highest[half] = most;
      float sum = 0;
#pragma unroll
      for (int n = 0; n < kRuns; ++n)
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          score[n][i] = power_of_two(score[n][i] - most);
          sum += score[n][i];
        }
      total[half] = fmaf(total[half], shrink, sum);  // of this lane's columns
#pragma unroll
      for (int n = 0; n < D / 8; ++n) {
        sums[n][2 * half] *= shrink;
        sums[n][2 * half + 1] *= shrink;
      }
    }
    if (shape.threshold != 0) {
      const KeptWeights weights(kept, place.begin + warp * 16, k_begin, lane);
#pragma unroll
      for (int n = 0; n < kRuns; ++n) {
        const std::uint32_t bits = weights.of(n);
#pragma unroll
        for (int i = 0; i < 4; ++i)
          score[n][i] = (bits >> i & 1u) != 0 ? score[n][i] * shape.dropout_scale : 0.0f;
      }
    }
    add_weighted<Products, D, kRuns>(score, keys + kTile * D, lane, sums);
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    total[half] += __shfl_xor_sync(kAllLanes, total[half], 1);
    total[half] += __shfl_xor_sync(kAllLanes, total[half], 2);
  }

  if constexpr (Groups > 1) {
    // The second group hands over what it has, each thread to its like in the first.
    float* const handed = reinterpret_cast<float*>(chunks) + thread;
    __syncthreads();
    if (group == 1) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        handed[(2 * half) * kTensorThreads] = highest[half];
        handed[(2 * half + 1) * kTensorThreads] = total[half];
      }
#pragma unroll
      for (int n = 0; n < D / 8; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) handed[(4 + n * 4 + i) * kTensorThreads] = sums[n][i];
    }
    __syncthreads();
    if (group == 1) return;
    if (tiles > 1) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float other = handed[(2 * half) * kTensorThreads];
        const float most = fmaxf(highest[half], other);
        const float mine = power_of_two(highest[half] - most), others = power_of_two(other - most);
        highest[half] = most;
        total[half] = fmaf(total[half], mine, handed[(2 * half + 1) * kTensorThreads] * others);
#pragma unroll
        for (int n = 0; n < D / 8; ++n)
#pragma unroll
          for (int i = 2 * half; i < 2 * half + 2; ++i)
            sums[n][i] = fmaf(sums[n][i], mine, handed[(4 + n * 4 + i) * kTensorThreads] * others);
      }
    }
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float inverse = inverse_of(total[half]);
#pragma unroll
    for (int n = 0; n < D / 8; ++n) {
      sums[n][2 * half] *= inverse;
      sums[n][2 * half + 1] *= inverse;
    }
    const int query = first_query + half * 8;
    if (args.statistics != nullptr && lane % 4 == 0 && query < place.lq) {
      float* const numbers = args.statistics + statistics_place(shape, place, head, query);
      numbers[0] = highest[half];
      numbers[1] = inverse;
    }
  }
  store_tile<D>(sums, shape, at.y, at.y_stride, place.begin + warp * 16, place.lq, lane, args.y);
}

template <typename Products, int D, int Groups>
void run_tensor_forward(const AttentionArgs& args, dim3 grid, cudaStream_t on) {
  const auto kernel = tensor_forward<Products, D, Groups>;
  constexpr int kBytes = kForwardBytes<Products, D, Groups>;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  kernel<<<grid, kTensorThreads * Groups, kBytes, on>>>(args);
}

template <typename Products, int D>
void run_tensor_forward(const AttentionArgs& args, cudaStream_t on) {
  const dim3 grid(most_tiles(args.shape, false), static_cast<unsigned>(args.shape.heads));
  constexpr unsigned kFewBlocks = 264;
  if constexpr (D * sizeof(typename Products::Element) <= 256) {
    if (grid.x * grid.y < kFewBlocks && kForwardBytes<Products, D, 2> <= most_shared_memory())
      return run_tensor_forward<Products, D, 2>(args, grid, on);
  }
  run_tensor_forward<Products, D, 1>(args, grid, on);
}

template <typename Products>
void run_tensor_forward(const AttentionArgs& args, cudaStream_t on) {
  if (args.shape.d <= 32)
    run_tensor_forward<Products, 32>(args, on);
  else if (args.shape.d <= 64)
    run_tensor_forward<Products, 64>(args, on);
  else
    run_tensor_forward<Products, 128>(args, on);
}

}  // namespace lathe::engine::cuda
