#pragma once

// Which of a warp's scores count and which of its weights dropout keeps, 16 rows by 8 N columns in
// the order of a product's result: bit 4 n + i for number i of run n.

#include "lathe/engine/cuda/kernels/attention.cuh"

namespace lathe::engine::cuda {

/// Which key of a tile its row is, where keys are the columns of scores: so that the eight numbers
/// that a lane has of a row in four runs are neighbouring keys, which dropout draws at once.
__device__ inline int key_of_row(int row) {
  return (row & ~31) | (row & 6) << 2 | (row & 24) >> 2 | (row & 1);
}

/// Drops weights of 16 queries by 8 N keys: `drop(number, is_kept)` for each of them.
template <int N, typename Drop>
__device__ void drop_by_queries(const KeptKeys& kept, int query, int k_begin, int lane, Drop drop) {
#pragma unroll
  for (int i = 0; i < N / 2; ++i) {
    const int half = i % 2, first = i / 2 * 4;
    const PhiloxCounter random =
        kept.draw(query + lane / 4 + half * 8, k_begin + (first + lane % 4) * 8);
#pragma unroll
    for (int n = 0; n < 8; ++n)
      drop(first + n / 2, 2 * half + n % 2, kept.keeps(random[n / 2], n % 2));
  }
}

/// Kept weights of 16 keys by 8 N queries, in the order of a result: a lane draws for two queries
/// of run g, or with N = 4 for one half of the keys.
template <int N>
struct KeptByKeys {
  std::uint32_t own;
  int lane;

  __device__ KeptByKeys(const KeptKeys& kept, int q_begin, int key, int of_lane)
      : own(0), lane(of_lane) {
    if (kept.threshold == 0) return;
    const int g = lane / 4, query = q_begin + g % N * 8 + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < N / 2; ++i)
      own |= kept.bits(query + i % 2, key + (N == 8 ? i / 2 : g / N) * 8) << (8 * i);
  }
  /// Bits 0 to 3 for the lane's four numbers of run n.
  __device__ std::uint32_t of(int n) const {
    const int t = lane % 4, g = lane / 4;
    if constexpr (N == 8) {
      const std::uint32_t word = __shfl_sync(kAllLanes, own, n * 4 + t) >> g;
      return (word & 1u) | (word >> 7 & 2u) | (word >> 14 & 4u) | (word >> 21 & 8u);
    } else {
      const std::uint32_t low = __shfl_sync(kAllLanes, own, n * 4 + t) >> g;
      const std::uint32_t high = __shfl_sync(kAllLanes, own, (n + N) * 4 + t) >> g;
      return (low & 1u) | (low >> 7 & 2u) | (high << 2 & 4u) | (high >> 5 & 8u);
    }
  }
};

/// Scores of masked keys, and of none at all. A loop, because few tiles are at an edge and
/// registers are short.
struct EdgeScores {
  std::uint32_t masked = 0, beyond = 0;
};
template <int N, bool ByKeys>
__device__ EdgeScores edge_scores(const AttentionShape& shape, const Place& place, int first_row,
                                  int first_column, int lane) {
  EdgeScores edge;
#pragma unroll 1
  for (int bit = 0; bit < 4 * N; ++bit) {
    const int row = first_row + lane / 4 + bit / 2 % 2 * 8;
    const int column = bit / 4 * 8 + lane % 4 * 2 + bit % 2;
    const int key = ByKeys ? row : first_column + key_of_row(column);
    const int query = ByKeys ? first_column + column : row;
    if (key >= place.lk)
      edge.beyond |= 1u << bit;
    else if (is_masked(shape, place, query, key))
      edge.masked |= 1u << bit;
  }
  return edge;
}

}  // namespace lathe::engine::cuda
