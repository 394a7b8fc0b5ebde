#pragma once

// Attention by tensor cores: a block has 64 queries of one head, a warp 16 of them. Where there are
// few blocks, two groups of four warps take every second tile of keys each and are joined at the
// end; where there are many, a warp has two strips of 16 queries, which read keys and values once.

#include "lathe/engine/cuda/kernels/attention_tensor.cuh"

namespace lathe::engine::cuda {

/// How a block works: groups of warps, and strips of 16 queries for each warp.
template <int OfGroups, int OfStrips>
struct Division {
  static constexpr int kGroups = OfGroups, kStrips = OfStrips;
  static constexpr int kThreads = kTensorThreads * kGroups;
  static constexpr int kQueries = kTile * kStrips;
};

/// Queries, and for each group two times keys and values; where those come raw, once more as float.
template <typename Products, int D, typename By>
int forward_bytes(const AttentionShape& shape) {
  const int raw = comes_raw<Products>(shape) ? 2 * static_cast<int>(sizeof(float)) : 0;
  const int element = static_cast<int>(sizeof(typename Products::Element));
  return kTile * D * (element * (By::kStrips + 4 * By::kGroups) + raw * By::kGroups);
}

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

/// Which of a lane's scores are of masked keys and of none at all: bit 4 n + i for number i of run
/// n. A loop, because few tiles are at an edge and registers are short.
struct EdgeScores {
  std::uint32_t masked = 0, beyond = 0;

  __device__ EdgeScores(const AttentionShape& shape, const Place& place, int first_query,
                        int k_begin, int lane) {
#pragma unroll 1
    for (int bit = 0; bit < kTile / 2; ++bit) {
      const int query = first_query + bit / 2 % 2 * 8;
      const int key = k_begin + bit / 4 * 8 + lane % 4 * 2 + bit % 2;
      if (key >= place.lk)
        beyond |= 1u << bit;
      else if (is_masked(shape, place, query, key))
        masked |= 1u << bit;
    }
  }
};

/// What a warp knows of a strip so far: numbers of rows g and g + 8.
template <int D>
struct Strip {
  float highest[2] = {-INFINITY, -INFINITY};
  float total[2] = {0, 0};  ///< of the lane's columns until the end

  /// Takes 64 more scores a row, each times `factor`, and makes them weights.
  template <int Runs>
  __device__ void take(Accumulator (&score)[Runs], float factor, Accumulator (&sums)[D / 8]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float most = -INFINITY;
#pragma unroll
      for (int n = 0; n < Runs; ++n)
        most = fmaxf(most, fmaxf(score[n][2 * half], score[n][2 * half + 1]));
      most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, 1));
      most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, 2));
      most = fmaxf(highest[half], most * factor);
      const float shrink = power_of_two(highest[half] - most);
      highest[half] = most;
      float sum = 0;
#pragma unroll
      for (int n = 0; n < Runs; ++n)
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          score[n][i] = power_of_two(fmaf(score[n][i], factor, -most));
          sum += score[n][i];
        }
      total[half] = fmaf(total[half], shrink, sum);
#pragma unroll
      for (int n = 0; n < D / 8; ++n) {
        sums[n][2 * half] *= shrink;
        sums[n][2 * half + 1] *= shrink;
      }
    }
  }
  __device__ void join_lanes() {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      total[half] += __shfl_xor_sync(kAllLanes, total[half], 1);
      total[half] += __shfl_xor_sync(kAllLanes, total[half], 2);
    }
  }
  /// Leaves everything for the same thread of another group, which adds it to its own.
  __device__ void hand_over(const Accumulator (&sums)[D / 8], float* to) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      to[(2 * half) * kTensorThreads] = highest[half];
      to[(2 * half + 1) * kTensorThreads] = total[half];
    }
#pragma unroll
    for (int n = 0; n < D / 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) to[(4 + n * 4 + i) * kTensorThreads] = sums[n][i];
  }
  __device__ void add(const float* from, Accumulator (&sums)[D / 8]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float other = from[(2 * half) * kTensorThreads];
      const float most = fmaxf(highest[half], other);
      const float mine = power_of_two(highest[half] - most), others = power_of_two(other - most);
      highest[half] = most;
      total[half] = fmaf(total[half], mine, from[(2 * half + 1) * kTensorThreads] * others);
#pragma unroll
      for (int n = 0; n < D / 8; ++n)
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i)
          sums[n][i] = fmaf(sums[n][i], mine, from[(4 + n * 4 + i) * kTensorThreads] * others);
    }
  }
  __device__ void divide(Accumulator (&sums)[D / 8]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      total[half] = inverse_of(total[half]);
#pragma unroll
      for (int n = 0; n < D / 8; ++n) {
        sums[n][2 * half] *= total[half];
        sums[n][2 * half + 1] *= total[half];
      }
    }
  }
};

/// Blocks of a multiprocessor that the compiler must leave registers for: with four, the batches of
/// short sequences that one often has run all at once.
template <typename Products, int D, typename By>
inline constexpr int kForwardBlocks =
    sizeof(typename Products::Element) == 2 && D <= 64 && By::kGroups == 1 ? 4 / By::kStrips : 1;

template <typename Products, int D, typename By>
__global__ void __launch_bounds__(By::kThreads, kForwardBlocks<Products, D, By>)
    tensor_forward(AttentionArgs args) {
  using Element = typename Products::Element;
  constexpr int kSteps = D / Products::kStep, kRuns = kTile / 8, kStrips = By::kStrips;
  constexpr int kGroups = By::kGroups, kTileSize = kTile * D;
  constexpr int kChunks = kTileSize * static_cast<int>(sizeof(Element)) / 16;
  extern __shared__ uint4 chunks[];
  Element* const queries = reinterpret_cast<Element*>(chunks);
  const int group = static_cast<int>(threadIdx.x) / kTensorThreads;
  const int thread = static_cast<int>(threadIdx.x) % kTensorThreads;
  const int lane = thread % kWarp, warp = thread / kWarp;
  Element* const own = queries + (kStrips + 4 * group) * kTileSize;  // two times keys and values

  const AttentionShape& shape = args.shape;
  const bool is_raw = comes_raw<Products>(shape), is_bf16 = shape.elements == Number::BF16;
  float* const raws = reinterpret_cast<float*>(queries + (kStrips + 4 * kGroups) * kTileSize);
  float* const raw = is_raw ? raws + group * 2 * kTileSize : nullptr;
  const std::int64_t width = static_cast<std::int64_t>(shape.heads) * shape.d;
  const auto clear = [&] { clear_rows_of(shape, args.y, shape.queries, width, width); };
  const Place place = find_place(shape, blockIdx.x, false, By::kQueries);
  if (place.sequence < 0) return clear();
  const int head = static_cast<int>(blockIdx.y);
  const HeadPlace at = head_place(shape, place, head);
  const int tiles = tiles_of(keys_seen(shape, place, place.begin + By::kQueries));
  const KeptKeys kept(shape, place, head);
  const float scale = shape.scale * kLog2E;
  const auto load = [&](int tile) {
    Element* const to = own + tile / kGroups % 2 * 2 * kTileSize;
    if (tile < tiles) {
      load_tile<Products, D, kTile>(shape.k, is_bf16, at.k, at.k_stride, tile * kTile, place.lk,
                                    shape.d, thread, kTensorThreads, to, raw);
      load_tile<Products, D, kTile>(shape.v, is_bf16, at.k, at.k_stride, tile * kTile, place.lk,
                                    shape.d, thread, kTensorThreads, to + kTileSize,
                                    is_raw ? raw + kTileSize : nullptr);
    }
    close_copies();
  };

  load_tile<Products, D, By::kQueries>(shape.q, is_bf16, at.q, at.q_stride, place.begin, place.lq,
                                       shape.d, static_cast<int>(threadIdx.x), By::kThreads,
                                       queries, nullptr);
  close_copies();
  load(group);
  if (!is_raw) load(group + kGroups);
  await_copies<2>();
  if (is_raw) await_copies<0>();
  Products::settle(queries, nullptr, kStrips * kChunks, static_cast<int>(threadIdx.x),
                   By::kThreads);
  __syncthreads();
  Fragment q[kSteps][kStrips];
#pragma unroll
  for (int step = 0; step < kSteps; ++step)
#pragma unroll
    for (int strip = 0; strip < kStrips; ++strip)
      load_left<Products, D>(queries, (warp * kStrips + strip) * 16, step, lane, q[step][strip]);

  Strip<D> strips[kStrips];
  Accumulator sums[kStrips][D / 8] = {};
  const int first_query = place.begin + warp * kStrips * 16;
  for (int tile = group; tile < tiles; tile += kGroups) {
    const int k_begin = tile * kTile;
    Element* const keys = own + tile / kGroups % 2 * 2 * kTileSize;
    const bool is_first = tile == group;
    if (is_first && !is_raw)
      await_copies<1>();
    else
      await_copies<0>();
    Products::settle(keys, raw, 2 * kChunks, thread, kTensorThreads);
    meet<kTensorThreads>(1 + group);
    if (!is_first || is_raw) load(tile + kGroups);  // where the tile before was
    Accumulator score[kStrips][kRuns] = {};
#pragma unroll
    for (int step = 0; step < kSteps; ++step)
      add_step<Products, D, kRuns, kStrips>(q[step], keys, step, lane, score);
    // Scores are scaled within the exponential, except at edges.
    const bool is_edge = scale < 0 || !is_plain(shape, place, place.begin, k_begin, kTile);
#pragma unroll
    for (int strip = 0; strip < kStrips; ++strip) {
      const int query = first_query + strip * 16;
      if (is_edge) {
        const EdgeScores edge(shape, place, query + lane / 4, k_begin, lane);
#pragma unroll
        for (int n = 0; n < kRuns; ++n)
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            float& one = score[strip][n][i];
            one *= scale;
            if ((edge.masked >> (4 * n + i) & 1u) != 0) one = kMasked;
            if ((edge.beyond >> (4 * n + i) & 1u) != 0) one = -INFINITY;
          }
      }
      strips[strip].take(score[strip], is_edge ? 1.0f : scale, sums[strip]);
      if (shape.threshold != 0) {
        const KeptWeights weights(kept, query, k_begin, lane);
#pragma unroll
        for (int n = 0; n < kRuns; ++n) {
          const std::uint32_t bits = weights.of(n);
#pragma unroll
          for (int i = 0; i < 4; ++i)
            score[strip][n][i] =
                (bits >> i & 1u) != 0 ? score[strip][n][i] * shape.dropout_scale : 0.0f;
        }
      }
    }
    add_weighted<Products, D, kRuns, kStrips>(score, keys + kTileSize, lane, sums);
  }
#pragma unroll
  for (int strip = 0; strip < kStrips; ++strip) strips[strip].join_lanes();

  if constexpr (kGroups > 1) {
    static_assert(kStrips == 1);
    float* const handed = reinterpret_cast<float*>(chunks) + thread;
    __syncthreads();
    if (group == 1) strips[0].hand_over(sums[0], handed);
    __syncthreads();
    if (group == 1) return clear();
    if (tiles > 1) strips[0].add(handed, sums[0]);
  }
#pragma unroll
  for (int strip = 0; strip < kStrips; ++strip) {
    const int begin = first_query + strip * 16;
    strips[strip].divide(sums[strip]);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int query = begin + lane / 4 + half * 8;
      if (args.statistics == nullptr || lane % 4 != 0 || query >= place.lq) continue;
      float* const numbers = args.statistics + statistics_place(shape, place, head, query);
      numbers[0] = strips[strip].highest[half];
      numbers[1] = strips[strip].total[half];
    }
    // Each warp goes through a place that only it uses by now.
    Element* const room = kGroups > 1 ? own + 2 * kTileSize : queries;
    store_tile<Products, D>(sums[strip], shape, at.y, at.y_stride, begin, place.lq, lane,
                            room + (warp * kStrips + strip) * 16 * D, args.y);
  }
  clear();
}

template <typename Products, int D, typename By>
void run_tensor_forward_by(const AttentionArgs& args, cudaStream_t on) {
  const auto kernel = tensor_forward<Products, D, By>;
  const int bytes = forward_bytes<Products, D, By>(args.shape);
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  const dim3 grid(most_tiles(args.shape, false, By::kQueries),
                  static_cast<unsigned>(args.shape.heads));
  kernel<<<grid, By::kThreads, bytes, on>>>(args);
}

template <typename Products, int D>
void run_tensor_forward(const AttentionArgs& args, cudaStream_t on) {
  constexpr bool kIsHalf = sizeof(typename Products::Element) == 2;
  constexpr unsigned kFewBlocks = 264, kManyBlocks = 528;
  const auto heads = static_cast<unsigned>(args.shape.heads);
  if constexpr (kIsHalf && D == 64) {
    using Twice = Division<1, 2>;
    if (most_tiles(args.shape, false, Twice::kQueries) * heads >= kManyBlocks &&
        average_queries(args.shape) >= 4 * Twice::kQueries)
      return run_tensor_forward_by<Products, D, Twice>(args, on);
  }
  if constexpr (kIsHalf || D <= 64) {
    if (most_tiles(args.shape, false) * heads < kFewBlocks &&
        forward_bytes<Products, D, Division<2, 1>>(args.shape) <= most_shared_memory())
      return run_tensor_forward_by<Products, D, Division<2, 1>>(args, on);
  }
  run_tensor_forward_by<Products, D, Division<1, 1>>(args, on);
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
