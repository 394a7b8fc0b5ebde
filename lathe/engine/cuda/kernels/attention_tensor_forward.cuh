#pragma once

// Attention by tensor cores: a group of four warps has 64 queries of one head. A block is one
// group, or two that share the keys they go through; where there are few blocks, several groups
// have the same queries, take tiles of keys in turn and are joined at the end.
//
// The scores of the next tile are multiplied while the weights of this one are, and weights are
// multiplied by values while the next scores become weights. So keys are read one tile ahead of
// values: there are two places for keys and three for values.

#include "lathe/engine/cuda/kernels/attention_group.cuh"

namespace lathe::engine::cuda {

inline constexpr int kKeyPlaces = 2, kValuePlaces = 3;
inline constexpr int kTilesOfSharer = kKeyPlaces + kValuePlaces;

/// Queries, and the sharers' keys and values; values that are crossed come raw first.
template <typename Products, int D, typename By>
inline constexpr int kForwardBytes =
    kTile * D * static_cast<int>(sizeof(typename Products::Element)) *
    (By::kOwners + (kTilesOfSharer + (Products::kCrosses ? 1 : 0)) * By::kSharers);

/// What a warp knows of its 16 queries so far: numbers of rows g and g + 8.
struct RowWeights {
  float highest[2] = {-INFINITY, -INFINITY};
  float total[2] = {0, 0};  ///< of the lane's columns until the end

  /// Takes 64 more scores a row, each times `factor`, and makes them weights. What was weighed
  /// before counts `shrink` times as much from now on.
  template <int N>
  __device__ void take(Accumulator (&score)[N], float factor, float (&shrink)[2]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float most = -INFINITY;
#pragma unroll
      for (int n = 0; n < N; ++n)
        most = fmaxf(most, fmaxf(score[n][2 * half], score[n][2 * half + 1]));
      most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, 1));
      most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, 2));
      most = fmaxf(highest[half], most * factor);
      shrink[half] = power_of_two(highest[half] - most);
      highest[half] = most;
      float sum[2] = {0, 0};
#pragma unroll
      for (int n = 0; n < N; ++n)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          float& one = score[n][2 * half + i];
          one = power_of_two(fmaf(one, factor, -most));
          sum[i] += one;
        }
      total[half] = fmaf(total[half], shrink[half], sum[0] + sum[1]);
    }
  }
  __device__ void join_lanes() {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      total[half] += __shfl_xor_sync(kAllLanes, total[half], 1);
      total[half] += __shfl_xor_sync(kAllLanes, total[half], 2);
    }
  }
};

/// Leaves everything for the same thread of another group, which adds it to its own.
template <int N>
__device__ void hand_over(const RowWeights& rows, const Accumulator (&sums)[N], float* to) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    to[(2 * half) * kTensorThreads] = rows.highest[half];
    to[(2 * half + 1) * kTensorThreads] = rows.total[half];
  }
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) to[(4 + n * 4 + i) * kTensorThreads] = sums[n][i];
}
template <int N>
__device__ void add_handed(const float* from, RowWeights& rows, Accumulator (&sums)[N]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float other = from[(2 * half) * kTensorThreads];
    const float most = fmaxf(rows.highest[half], other);
    const float mine = power_of_two(rows.highest[half] - most);
    const float others = power_of_two(other - most);
    rows.highest[half] = most;
    rows.total[half] = fmaf(rows.total[half], mine, from[(2 * half + 1) * kTensorThreads] * others);
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int i = 2 * half; i < 2 * half + 2; ++i)
        sums[n][i] = fmaf(sums[n][i], mine, from[(4 + n * 4 + i) * kTensorThreads] * others);
  }
}

/// Blocks of a multiprocessor that the compiler must leave registers for: with 512 threads, the
/// batches of short sequences that one often has run all at once.
template <typename Products, int D, typename By>
inline constexpr int kForwardBlocks =
    sizeof(typename Products::Element) == 2 && D <= 64 ? 512 / By::kThreads : 1;

template <typename Products, int D, typename By, bool Drops>
__global__ void __launch_bounds__(By::kThreads, kForwardBlocks<Products, D, By>)
    tensor_forward(AttentionArgs args) {
  using Element = typename Products::Element;
  using Group = GroupProducts<Products, D>;
  constexpr int kRuns = kTile / 8, kTileSize = kTile * D;
  constexpr int kAhead = Products::kCrosses ? 1 : 2;  // what comes raw has one place only
  extern __shared__ __align__(1024) uint4 chunks[];
  Element* const queries = reinterpret_cast<Element*>(chunks);
  const int owner = static_cast<int>(threadIdx.x) / kTensorThreads % By::kOwners;
  const int sharer = static_cast<int>(threadIdx.x) / By::kTeam;
  const int in_team = static_cast<int>(threadIdx.x) % By::kTeam;
  const int thread = in_team % kTensorThreads, lane = thread % kWarp, warp = thread / kWarp;
  Element* const keys = queries + (By::kOwners + kTilesOfSharer * sharer) * kTileSize;
  Element* const values = keys + kKeyPlaces * kTileSize;

  const AttentionShape& shape = args.shape;
  const bool is_bf16 = shape.elements == Number::BF16;
  float* raw = nullptr;
  if constexpr (Products::kCrosses)
    raw = queries + (By::kOwners + kTilesOfSharer * By::kSharers + sharer) * kTileSize;
  const std::int64_t width = static_cast<std::int64_t>(shape.heads) * shape.d;
  const auto clear = [&] { clear_rows_of(shape, args.y, shape.queries, width, width); };
  const Place place = find_place(shape, static_cast<int>(blockIdx.x), false, By::kRows);
  if (place.sequence < 0) return clear();
  const int head = static_cast<int>(blockIdx.y);
  const HeadPlace at = head_place(shape, place, head);
  const int tiles = tiles_of(keys_seen(shape, place, place.begin + By::kRows));
  // Of this team, in its own numbers.
  const int own_tiles = (tiles - sharer + By::kSharers - 1) / By::kSharers;
  const auto key_at = [&](int n) { return (n * By::kSharers + sharer) * kTile; };
  const auto keys_at = [&](int n) { return keys + n % kKeyPlaces * kTileSize; };
  const auto values_at = [&](int n) { return values + n % kValuePlaces * kTileSize; };
  const auto load = [&](int n) {
    if (n < own_tiles) {
      load_tile<Products, D, kTile, By::kTeam, true>(shape.k, is_bf16, at.k, at.k_stride, key_at(n),
                                                     place.lk, shape.d, in_team, keys_at(n),
                                                     nullptr);
      load_tile<Products, D, kTile, By::kTeam, true>(shape.v, is_bf16, at.k, at.k_stride, key_at(n),
                                                     place.lk, shape.d, in_team, values_at(n), raw);
    }
    close_copies();
  };
  const auto settle = [&](int n) {
    Products::template settle<D, kTile, By::kTeam>(nullptr, keys_at(n), nullptr, in_team);
    Products::template settle<D, kTile, By::kTeam>(raw, nullptr, values_at(n), in_team);
    publish<Products>();
  };

  const int all = static_cast<int>(threadIdx.x);
#pragma unroll 1
  for (int i = 0; i < By::kOwners; ++i)
    load_tile<Products, D, kTile, By::kThreads>(shape.q, is_bf16, at.q, at.q_stride,
                                                place.begin + i * kTile, place.lq, shape.d, all,
                                                queries + i * kTileSize, nullptr);
#pragma unroll 1
  for (int n = 0; n < kAhead; ++n) load(n);
  await_copies<kAhead - 1>();
#pragma unroll 1
  for (int i = 0; i < By::kOwners; ++i)
    Products::template settle<D, kTile, By::kThreads>(nullptr, queries + i * kTileSize, nullptr,
                                                      all);
  settle(0);
  __syncthreads();
  if constexpr (kAhead < 2) load(1);

  const KeptKeys kept(shape, place, head);
  const float scale = shape.scale * kLog2E;
  const Element* const own_queries = queries + owner * kTileSize;
  const int own_begin = place.begin + owner * kTile, first_query = own_begin + warp * 16;
  RowWeights rows;
  Accumulator score[kRuns], sums[D / 8] = {};
  Group::open();
  Group::multiply(own_queries, keys_at(0), warp, lane, score);
  Group::template await<0>();
  pin(score);
  for (int n = 0; n < own_tiles; ++n) {
    const int k_begin = key_at(n);
    // Scores are scaled within the exponential, except at edges.
    const bool is_edge = scale < 0 || !is_plain(shape, place, own_begin, k_begin, kTile);
    if (is_edge) {
      const EdgeScores edge = edge_scores<kRuns, false>(shape, place, first_query, k_begin, lane);
#pragma unroll
      for (int run = 0; run < kRuns; ++run)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          float& one = score[run][i];
          one *= scale;
          if ((edge.masked >> (4 * run + i) & 1u) != 0) one = kMasked;
          if ((edge.beyond >> (4 * run + i) & 1u) != 0) one = -INFINITY;
        }
    }
    float shrink[2];
    rows.take(score, is_edge ? 1.0f : scale, shrink);
    if constexpr (Drops)
      drop_by_queries<kRuns>(kept, first_query, k_begin, lane, [&](int run, int i, bool is_kept) {
        if (!is_kept) score[run][i] = 0;
      });
    // The product before reads its weights from registers until it has been awaited.
    Group::template await<0>();
    pin(sums);
    pin(score);
    Fragment weights[kTile / Products::kStep];
#pragma unroll
    for (int step = 0; step < kTile / Products::kStep; ++step)
      Products::take(score, step, weights[step]);
    // Seldom, once the largest scores have been seen.
    if (__any_sync(kAllLanes, shrink[0] != 1.0f || shrink[1] != 1.0f)) scale_rows(sums, shrink);
    if (n + 1 < own_tiles) {
      await_copies<0>();
      settle(n + 1);
      meet<By::kTeam, 1, By::kSharers>(sharer);
      load(n + 2);  // where these keys and the values before were
    }
    // After the last tile, of whatever is there: a branch would make products wait for each other.
    pin(sums);
    Group::open();
    Group::multiply(own_queries, keys_at(n + 1), warp, lane, score);
    Group::add(weights, values_at(n), lane, sums);
    Group::template await<1>();
    pin(score);
  }
  Group::template await<0>();
  pin(sums);
  rows.join_lanes();
  __syncthreads();  // all is read

  if constexpr (By::kSharers > 1) {
    static_assert(By::kOwners == 1);
    // Each leaves its sums where its keys were.
    constexpr int kStep = kTilesOfSharer * kTileSize * static_cast<int>(sizeof(Element)) /
                          static_cast<int>(sizeof(float));
    float* const handed = reinterpret_cast<float*>(queries + kTileSize) + thread;
    if (sharer > 0) hand_over(rows, sums, handed + sharer * kStep);
    __syncthreads();
    if (sharer > 0) return clear();
    for (int other = 1; other < min(By::kSharers, tiles); ++other)
      add_handed(handed + other * kStep, rows, sums);
  }
  float inverse[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    inverse[half] = inverse_of(rows.total[half]);
    const int query = first_query + lane / 4 + half * 8;
    if (args.statistics == nullptr || lane % 4 != 0 || query >= place.lq) continue;
    float* const numbers = args.statistics + statistics_place(shape, place, head, query);
    numbers[0] = rows.highest[half];
    numbers[1] = inverse[half];
  }
  if constexpr (Drops)
    for (float& factor : inverse) factor *= shape.dropout_scale;
  scale_rows(sums, inverse);
  store_tile<Products, D>(sums, shape, at.y, at.y_stride, first_query, place.lq, lane,
                          queries + (owner * 4 + warp) * 16 * D, args.y);
  clear();
}

/// False where shared memory is too small for it.
template <typename Products, int D, typename By, bool Drops>
bool try_tensor_forward(const AttentionArgs& args, cudaStream_t on) {
  constexpr int kBytes = kForwardBytes<Products, D, By>;
  if (kBytes > most_shared_memory()) return false;
  const auto kernel = tensor_forward<Products, D, By, Drops>;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  const dim3 grid(most_tiles(args.shape, false, By::kRows),
                  static_cast<unsigned>(args.shape.heads));
  kernel<<<grid, By::kThreads, kBytes, on>>>(args);
  return true;
}
template <typename Products, int D, bool Drops>
bool try_tensor_forward(const AttentionArgs& args, cudaStream_t on) {
  using Alone = Division<1, 1>;
  if constexpr (D == 64) {
    constexpr unsigned kManyBlocks = 200;  // of 64 queries
    // As measured: groups that share keys copy less and wait for each other.
    using Many = std::conditional_t<Drops || Products::kCrosses, Division<2, 1>, Alone>;
    using Few = Division<1, Products::kCrosses ? 2 : 4>;
    const auto heads = static_cast<unsigned>(args.shape.heads);
    const bool has_many = most_tiles(args.shape, false) * heads >= kManyBlocks;
    return (!has_many && try_tensor_forward<Products, D, Few, Drops>(args, on)) ||
           try_tensor_forward<Products, D, Many, Drops>(args, on);
  } else {
    return try_tensor_forward<Products, D, Alone, Drops>(args, on);
  }
}
template <typename Products, int D>
bool try_tensor_forward(const AttentionArgs& args, cudaStream_t on) {
  return args.shape.threshold != 0 ? try_tensor_forward<Products, D, true>(args, on)
                                   : try_tensor_forward<Products, D, false>(args, on);
}
template <typename Products>
bool try_tensor_forward(const AttentionArgs& args, cudaStream_t on) {
  if (args.shape.d <= 32) return try_tensor_forward<Products, 32>(args, on);
  if (args.shape.d <= 64) return try_tensor_forward<Products, 64>(args, on);
  return try_tensor_forward<Products, 128>(args, on);
}

}  // namespace lathe::engine::cuda
