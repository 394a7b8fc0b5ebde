#pragma once

// Tiles of 64 rows in shared memory and their products in float, by a group of 128 threads.
//
// Thread (ty, tx) of 8 x 16 has rows 8 ty + i of a result; of a tile of scores columns 4 tx + j, of
// a row of D numbers four neighbours (two where D is 32) out of every 64. So one read of shared
// memory serves 10 operations, and what is not the same address for half a warp is 16 addresses
// side by side. Rows lie in chunks of four numbers whose place is exchanged by the row's number:
// without that, the rows 4 tx would all be in the same banks.

#include "lathe/engine/cuda/kernels/attention.cuh"

namespace lathe::engine::cuda {

inline constexpr int kGroup = 128;  // threads
inline constexpr int kLanes = 16;   // that share a row: half a warp
inline constexpr int kRows = 8, kColumns = 4;

/// Where chunk `chunk` of a row of `Width` numbers lies.
template <int Width>
__device__ int chunk_place(int row, int chunk) {
  constexpr int kMask = Width / 4 < kLanes ? Width / 4 - 1 : kLanes - 1;
  return row * Width + (chunk ^ (row / 4 & kMask)) * 4;
}

/// Rows [begin, begin + 64) of one head into shared memory by `count` threads, zeros where there
/// are none. The caller closes the copies.
template <int D>
__device__ void load_rows(const float* rows, std::int64_t stride, int begin, int length, int d,
                          int thread, int count, float* tile) {
  if (d % 4 == 0 && stride % 4 == 0) {
    for (int i = thread; i < kTile * (D / 4); i += count) {
      const int row = i / (D / 4), chunk = i % (D / 4);
      const bool is_there = begin + row < length && chunk * 4 < d;
      copy_ahead(tile + chunk_place<D>(row, chunk),
                 is_there ? rows + (begin + row) * stride + chunk * 4 : rows, is_there);
    }
    return;
  }
  for (int i = thread; i < kTile * D; i += count) {
    const int row = i / D, column = i % D;
    tile[chunk_place<D>(row, column / 4) + column % 4] =
        begin + row < length && column < d ? rows[(begin + row) * stride + column] : 0.0f;
  }
}

using Scores = float[kRows][kColumns];

/// product[i][j] = dot(a[8 ty + i], b[4 tx + j]).
template <int D>
__device__ void multiply_rows(const float* a, const float* b, int ty, int tx, Scores& product) {
#pragma unroll
  for (int i = 0; i < kRows; ++i)
#pragma unroll
    for (int j = 0; j < kColumns; ++j) product[i][j] = 0;
#pragma unroll 2
  for (int c = 0; c < D / 4; ++c) {
    float4 left[kRows], right[kColumns];
#pragma unroll
    for (int j = 0; j < kColumns; ++j)
      right[j] = *reinterpret_cast<const float4*>(b + chunk_place<D>(tx * kColumns + j, c));
#pragma unroll
    for (int i = 0; i < kRows; ++i)
      left[i] = *reinterpret_cast<const float4*>(a + chunk_place<D>(ty * kRows + i, c));
#pragma unroll
    for (int i = 0; i < kRows; ++i)
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        product[i][j] = fmaf(left[i].x, right[j].x, product[i][j]);
        product[i][j] = fmaf(left[i].y, right[j].y, product[i][j]);
        product[i][j] = fmaf(left[i].z, right[j].z, product[i][j]);
        product[i][j] = fmaf(left[i].w, right[j].w, product[i][j]);
      }
  }
}

/// A thread's columns of a row of D numbers: `kParts` runs of `kRun` side by side.
template <int D>
struct Columns {
  static constexpr int kCount = D / kLanes;
  static constexpr int kRun = kCount < 4 ? kCount : 4;
  static constexpr int kParts = kCount / kRun;
  __device__ static int at(int tx, int part) { return part * kLanes * kRun + tx * kRun; }
};
template <int D>
using Sums = float[kRows][Columns<D>::kCount];

template <int D>
__device__ void load_run(const float* tile, int row, int column, float (&run)[Columns<D>::kRun]) {
  const float* const from = tile + chunk_place<D>(row, column / 4) + column % 4;
  if constexpr (Columns<D>::kRun == 4) {
    const float4 value = *reinterpret_cast<const float4*>(from);
    run[0] = value.x;
    run[1] = value.y;
    run[2] = value.z;
    run[3] = value.w;
  } else {
    const float2 value = *reinterpret_cast<const float2*>(from);
    run[0] = value.x;
    run[1] = value.y;
  }
}

template <int D>
__device__ void add_product(const float (&factors)[kRows], const float* rows, int row, int tx,
                            Sums<D>& sums) {
#pragma unroll
  for (int part = 0; part < Columns<D>::kParts; ++part) {
    float run[Columns<D>::kRun];
    load_run<D>(rows, row, Columns<D>::at(tx, part), run);
#pragma unroll
    for (int i = 0; i < kRows; ++i)
#pragma unroll
      for (int e = 0; e < Columns<D>::kRun; ++e) {
        float& sum = sums[i][part * Columns<D>::kRun + e];
        sum = fmaf(factors[i], run[e], sum);
      }
  }
}

/// sums[i] += sum over n < count of weights[8 ty + i][n] * rows[n].
template <int D>
__device__ void add_weighted(const float* weights, const float* rows, int count, int ty, int tx,
                             Sums<D>& sums) {
#pragma unroll 2
  for (int chunk = 0; chunk < (count + 3) / 4; ++chunk) {
    float4 weight[kRows];
#pragma unroll
    for (int i = 0; i < kRows; ++i)
      weight[i] =
          *reinterpret_cast<const float4*>(weights + chunk_place<kTile>(ty * kRows + i, chunk));
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      float factors[kRows];
#pragma unroll
      for (int i = 0; i < kRows; ++i)
        factors[i] = step == 0   ? weight[i].x
                     : step == 1 ? weight[i].y
                     : step == 2 ? weight[i].z
                                 : weight[i].w;
      add_product<D>(factors, rows, chunk * 4 + step, tx, sums);
    }
  }
}

/// sums[i] += sum over n < count of weights[n][8 ty + i] * rows[n]: the same by columns.
template <int D>
__device__ void add_weighted_by_columns(const float* weights, const float* rows, int count, int ty,
                                        int tx, Sums<D>& sums) {
#pragma unroll 4
  for (int n = 0; n < count; ++n) {
    const float4 low = *reinterpret_cast<const float4*>(weights + chunk_place<kTile>(n, ty * 2));
    const float4 high =
        *reinterpret_cast<const float4*>(weights + chunk_place<kTile>(n, ty * 2 + 1));
    const float factors[kRows] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
    add_product<D>(factors, rows, n, tx, sums);
  }
}

__device__ inline void store_scores(const Scores& scores, int ty, int tx, float* tile) {
#pragma unroll
  for (int i = 0; i < kRows; ++i)
    *reinterpret_cast<float4*>(tile + chunk_place<kTile>(ty * kRows + i, tx)) =
        make_float4(scores[i][0], scores[i][1], scores[i][2], scores[i][3]);
}

/// Calls visit(column, run) for the thread's columns of row i that are below d.
template <int D, typename Visit>
__device__ void for_each_run(const Sums<D>& sums, int i, int d, int tx, const Visit& visit) {
#pragma unroll
  for (int part = 0; part < Columns<D>::kParts; ++part) {
    const int column = Columns<D>::at(tx, part);
    if (column < d) visit(column, &sums[i][part * Columns<D>::kRun]);
  }
}
/// Writes a run; the last one of a head of odd size is cut.
template <int D>
__device__ void store_run(float* to, const float* run, int left) {
  if constexpr (Columns<D>::kRun == 4) {
    if (left >= 4 && reinterpret_cast<std::uintptr_t>(to) % sizeof(float4) == 0) {
      *reinterpret_cast<float4*>(to) = make_float4(run[0], run[1], run[2], run[3]);
      return;
    }
  }
#pragma unroll
  for (int e = 0; e < Columns<D>::kRun; ++e)
    if (e < left) to[e] = run[e];
}
/// Writes a thread's rows of a result, those below `length`.
template <int D>
__device__ void store_rows(const Sums<D>& sums, int begin, int length, int d, std::int64_t stride,
                           int ty, int tx, float* rows) {
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const int row = begin + ty * kRows + i;
    if (row >= length) continue;
    for_each_run<D>(sums, i, d, tx, [&](int column, const float* run) {
      store_run<D>(rows + row * stride + column, run, d - column);
    });
  }
}

/// The sum, or the largest, over the threads that share a row.
template <typename Join>
__device__ float join_row(float value, Join join) {
#pragma unroll
  for (int distance = kLanes / 2; distance > 0; distance /= 2)
    value = join(value, __shfl_xor_sync(kAllLanes, value, distance));
  return value;
}

/// Which of a thread's scores dropout keeps: bits 4 i to 4 i + 3 of row i. Two neighbours share
/// blocks of eight keys, so each draws for half of the rows.
__device__ inline std::uint32_t draw_kept(const KeptKeys& kept, int q_begin, int k_begin, int ty,
                                          int tx) {
  const int side = tx % 2;
  std::uint32_t own = 0;
#pragma unroll
  for (int i = 0; i < kRows / 2; ++i)
    own |= kept.bits(q_begin + ty * kRows + side * (kRows / 2) + i, k_begin + tx * kColumns)
           << (8 * i);
  const std::uint32_t other = __shfl_xor_sync(kAllLanes, own, 1);
  const std::uint32_t low = side == 0 ? own : other, high = side == 0 ? other : own;
  std::uint32_t result = 0;
#pragma unroll
  for (int i = 0; i < kRows / 2; ++i) {
    result |= (low >> (8 * i + 4 * side) & 15u) << (4 * i);
    result |= (high >> (8 * i + 4 * side) & 15u) << (4 * i + 16);
  }
  return result;
}

}  // namespace lathe::engine::cuda
