#pragma once

// Products of floats in shared memory by the ordinary multipliers.

#include "lathe/engine/cuda/kernels/product_stages.cuh"

namespace lathe::engine::cuda {

/// Threads have `I` x `J` sums of a tile each. Of operands that lie by k these are groups of four
/// neighbours, else they are spread, so that neighbouring threads read neighbouring lines. Several
/// sets of threads may share the depth.
template <int Rows, int Columns, int I, int J, int Depth, int Shares = 1>
struct FloatTile {
  static constexpr int kAcross = Columns / J, kDown = Rows / I;
  static constexpr int kShares = Shares, kThreads = kAcross * kDown * Shares;
  static constexpr int kPaddingByK = 4, kPadding = 4;
  float sums[I][J] = {};

  template <bool IsByK, int Count>
  static __device__ int place(int thread, int i) {
    return IsByK ? thread * 4 + i / 4 * (Count * 4) + i % 4 : thread + Count * i;
  }
  // A warp has 4 x 8 threads, or 4 x 4 of two shares. The lowest bit of a lane is of its row and
  // the next of its column, so that pairs of lanes ask for the same 16 bytes.
  static __device__ int2 thread_place() {
    const int thread = threadIdx.x, lane = thread % kWarp;
    static_assert(kAcross == 4 || kAcross % 8 == 0);
    if constexpr (kAcross == 4)
      return make_int2((lane & 1) | (lane >> 1 & 2), (lane >> 1 & 1) | (lane >> 2 & 2));
    constexpr int kWarpsAcross = kAcross < 8 ? 1 : kAcross / 8;
    const int warp = thread % (kAcross * kDown) / kWarp;
    return make_int2(warp / kWarpsAcross * 4 + ((lane & 1) | (lane >> 3 & 2)),
                     warp % kWarpsAcross * 8 + (lane >> 1 & 7));
  }

  template <typename StageA, typename StageB, bool AByK, bool BByK>
  __device__ void multiply(const float* a, const float* b) {
    const int2 at = thread_place();
    const int first = Shares == 1 ? 0 : threadIdx.x / (kAcross * kDown) * (Depth / Shares);
    // Few results: code that is not in the instruction cache yet costs more than a loop does.
    constexpr int kUnrolled = Shares > 1 ? 1 : 4;
#pragma unroll kUnrolled
    for (int step = 0; step < Depth / Shares; step += 4) {
      const int k = first + step;
      float left[I][4], right[J][4];
      read_lines<StageA, AByK, kDown>(a, at.x, k, left);
      read_lines<StageB, BByK, kAcross>(b, at.y, k, right);
#pragma unroll
      for (int d = 0; d < 4; ++d)
#pragma unroll
        for (int i = 0; i < I; ++i)
#pragma unroll
          for (int j = 0; j < J; ++j) sums[i][j] = fmaf(left[i][d], right[j][d], sums[i][j]);
    }
  }

  template <bool AByK, bool BByK, int Pitch>
  __device__ void store(float* room) const {
    const int2 at = thread_place();
    if (Shares > 1) room += threadIdx.x / (kAcross * kDown) * (Rows * Pitch);
#pragma unroll
    for (int i = 0; i < I; ++i) {
      float* const row = room + place<AByK, kDown>(at.x, i) * Pitch;
      if constexpr (BByK) {
#pragma unroll
        for (int j = 0; j < J; j += 4)
          *reinterpret_cast<float4*>(row + place<true, kAcross>(at.y, j)) =
              make_float4(sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]);
      } else {
#pragma unroll
        for (int j = 0; j < J; ++j) row[place<false, kAcross>(at.y, j)] = sums[i][j];
      }
    }
  }

 private:
  // Four numbers along k of each of a thread's lines.
  template <typename Layout, bool IsByK, int Count, int Lines>
  static __device__ void read_lines(const float* stage, int thread, int k,
                                    float (&lines)[Lines][4]) {
    if constexpr (IsByK) {
#pragma unroll
      for (int d = 0; d < 4; ++d)
#pragma unroll
        for (int i = 0; i < Lines; i += 4) {
          const float4 read = *reinterpret_cast<const float4*>(
              stage + Layout::place(place<true, Count>(thread, i), k + d));
          lines[i][d] = read.x;
          lines[i + 1][d] = read.y;
          lines[i + 2][d] = read.z;
          lines[i + 3][d] = read.w;
        }
    } else {
#pragma unroll
      for (int i = 0; i < Lines; ++i) {
        const float4 read = *reinterpret_cast<const float4*>(
            stage + Layout::place(place<false, Count>(thread, i), k));
        lines[i][0] = read.x;
        lines[i][1] = read.y;
        lines[i][2] = read.z;
        lines[i][3] = read.w;
      }
    }
  }
};

}  // namespace lathe::engine::cuda
