#pragma once

// Tiles of 64 rows in shared memory and their products in float, by groups of 8 x Lanes threads.
//
// Thread (ty, tx) has rows 8 ty + i of a result, and out of every 4 Lanes columns the four from
// 4 tx on. What a multiprocessor can read from shared memory is a quarter of what it can multiply,
// and numbers that all threads share count as often as any: only with 8 x 8 results a thread do
// both take the same time. Rows lie in chunks of four numbers whose place is exchanged by the row's
// number: without that, rows 4 tx would all be in the same banks.

#include "lathe/engine/cuda/kernels/attention.cuh"

namespace lathe::engine::cuda {

inline constexpr int kRows = 8;

/// Where chunk `chunk` of a row of `Width` numbers lies.
template <int Width>
__device__ int chunk_place(int row, int chunk) {
  constexpr int kMask = Width / 4 < 16 ? Width / 4 - 1 : 15;
  return row * Width + (chunk ^ (row / 4 & kMask)) * 4;
}
template <int Width>
__device__ float4 load_chunk(const float* tile, int row, int chunk) {
  return *reinterpret_cast<const float4*>(tile + chunk_place<Width>(row, chunk));
}
template <int Width>
__device__ void store_chunk(float* tile, int row, int chunk, const float* four) {
  *reinterpret_cast<float4*>(tile + chunk_place<Width>(row, chunk)) =
      make_float4(four[0], four[1], four[2], four[3]);
}

/// Rows [begin, begin + 64) of one head into shared memory by `count` threads, zeros where there
/// are none. The caller closes the copies.
template <int D>
__device__ void load_rows(const float* rows, std::int64_t stride, int begin, int length, int d,
                          int thread, int count, float* tile) {
  if (d % 4 == 0 && stride % 4 == 0) {
#pragma unroll 4
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

/// A thread's part of 64 rows of Width numbers, `Rows` of them: chunk tx + Lanes * part of each.
template <int Width, int Lanes, int Rows = kRows>
using Part = float[Rows][Width / Lanes];
template <int Lanes>
__device__ int column_of(int tx, int j) {
  return (tx + j / 4 * Lanes) * 4 + j % 4;
}

/// product[i][j] = dot(a[8 ty + i], b[column j of the thread]).
template <int D, int Lanes>
__device__ void multiply_rows(const float* a, const float* b, int ty, int tx,
                              Part<kTile, Lanes>& product) {
  constexpr int kColumns = kTile / Lanes;
#pragma unroll
  for (int i = 0; i < kRows; ++i)
#pragma unroll
    for (int j = 0; j < kColumns; ++j) product[i][j] = 0;
#pragma unroll 2
  for (int c = 0; c < D / 4; ++c) {
    float4 left[kRows];
#pragma unroll
    for (int i = 0; i < kRows; ++i) left[i] = load_chunk<D>(a, ty * kRows + i, c);
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      const float4 right = load_chunk<D>(b, column_of<Lanes>(tx, j), c);
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        product[i][j] = fmaf(left[i].x, right.x, product[i][j]);
        product[i][j] = fmaf(left[i].y, right.y, product[i][j]);
        product[i][j] = fmaf(left[i].z, right.z, product[i][j]);
        product[i][j] = fmaf(left[i].w, right.w, product[i][j]);
      }
    }
  }
}

template <int D, int Lanes, int Rows>
__device__ void add_product(const float (&factors)[Rows], const float* rows, int row, int tx,
                            Part<D, Lanes, Rows>& sums) {
#pragma unroll
  for (int part = 0; part < D / Lanes / 4; ++part) {
    const float4 right = load_chunk<D>(rows, row, tx + part * Lanes);
#pragma unroll
    for (int i = 0; i < Rows; ++i) {
      float* const sum = &sums[i][part * 4];
      sum[0] = fmaf(factors[i], right.x, sum[0]);
      sum[1] = fmaf(factors[i], right.y, sum[1]);
      sum[2] = fmaf(factors[i], right.z, sum[2]);
      sum[3] = fmaf(factors[i], right.w, sum[3]);
    }
  }
}

/// sums[i] += sum over n < count of weights[first + i][n] * rows[n].
template <int D, int Lanes, int Rows>
__device__ void add_weighted(const float* weights, const float* rows, int count, int first, int tx,
                             Part<D, Lanes, Rows>& sums) {
#pragma unroll 2
  for (int chunk = 0; chunk < (count + 3) / 4; ++chunk) {
    float4 weight[Rows];
#pragma unroll
    for (int i = 0; i < Rows; ++i) weight[i] = load_chunk<kTile>(weights, first + i, chunk);
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      float factors[Rows];
#pragma unroll
      for (int i = 0; i < Rows; ++i)
        factors[i] = step == 0   ? weight[i].x
                     : step == 1 ? weight[i].y
                     : step == 2 ? weight[i].z
                                 : weight[i].w;
      add_product<D, Lanes, Rows>(factors, rows, chunk * 4 + step, tx, sums);
    }
  }
}

/// sums[i] += sum over n < count of weights[n][8 ty + i] * rows[n]: the same by columns.
template <int D, int Lanes>
__device__ void add_weighted_by_columns(const float* weights, const float* rows, int count, int ty,
                                        int tx, Part<D, Lanes>& sums) {
#pragma unroll 4
  for (int n = 0; n < count; ++n) {
    const float4 low = load_chunk<kTile>(weights, n, ty * 2);
    const float4 high = load_chunk<kTile>(weights, n, ty * 2 + 1);
    const float factors[kRows] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
    add_product<D, Lanes, kRows>(factors, rows, n, tx, sums);
  }
}

template <int Width, int Lanes>
__device__ void store_part(const Part<Width, Lanes>& numbers, int ty, int tx, float* tile) {
#pragma unroll
  for (int i = 0; i < kRows; ++i)
#pragma unroll
    for (int part = 0; part < Width / Lanes / 4; ++part)
      store_chunk<Width>(tile, ty * kRows + i, tx + part * Lanes, &numbers[i][part * 4]);
}

/// Writes four neighbours; those from `left` on are cut.
__device__ inline void store_four(float* to, const float* four, int left) {
  if (left >= 4 && reinterpret_cast<std::uintptr_t>(to) % sizeof(float4) == 0) {
    *reinterpret_cast<float4*>(to) = make_float4(four[0], four[1], four[2], four[3]);
    return;
  }
#pragma unroll
  for (int e = 0; e < 4; ++e)
    if (e < left) to[e] = four[e];
}

}  // namespace lathe::engine::cuda
