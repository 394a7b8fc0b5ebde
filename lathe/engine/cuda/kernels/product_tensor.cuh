#pragma once

// Products of TF32 and bfloat16 in shared memory by the tensor cores.

#include "lathe/engine/cuda/kernels/product_stages.cuh"

namespace lathe::engine::cuda {

/// Four matrices of 8 rows of 16 bytes, whose rows' addresses the lanes give, eight each.
static __device__ void read_matrices(std::uint32_t* to, const void* row) {
  const std::uint32_t place = shared_address(row);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(place)
               : "memory");
}
/// The same of halves, each matrix transposed.
static __device__ void read_transposed(std::uint32_t* to, const void* row) {
  const std::uint32_t place = shared_address(row);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(place)
               : "memory");
}

/// Warps have a part of the tile each, in pieces of 16 x 8. Several sets of warps may share the
/// depth.
template <Precision P, int Rows, int Columns, int WarpsDown, int WarpsAcross, int Depth,
          int Shares = 1>
struct TensorTile {
  static constexpr int kWarps = WarpsDown * WarpsAcross;
  static constexpr int kShares = Shares, kThreads = kWarps * Shares * kWarp;
  static constexpr bool kIsHalf = P == Precision::Bf16;
  static constexpr int kPaddingByK = 8, kPadding = kIsHalf ? 8 : 4;
  static constexpr int kHeight = Rows / WarpsDown / 16, kWidth = Columns / WarpsAcross / 8;
  static_assert(kWidth % 2 == 0);
  using Element = typename StageElement<P>::Type;
  float sums[kHeight][kWidth][4] = {};

  template <typename StageA, typename StageB, bool AByK, bool BByK>
  __device__ void multiply(const Element* a, const Element* b) {
    const int warp = threadIdx.x / kWarp % kWarps;
    const int first = Shares == 1 ? 0 : threadIdx.x / (kWarps * kWarp) * (Depth / Shares);
    const int row = warp / WarpsAcross * (Rows / WarpsDown);
    const int column = warp % WarpsAcross * (Columns / WarpsAcross);
    constexpr int kStep = kIsHalf ? 16 : 8;
#pragma unroll
    for (int step = 0; step < Depth / Shares; step += kStep) {
      const int k = first + step;
      std::uint32_t left[kHeight][4], right[kWidth][2];
#pragma unroll
      for (int i = 0; i < kHeight; ++i) read_left<StageA, AByK>(a, row + 16 * i, k, left[i]);
#pragma unroll
      for (int j = 0; j < kWidth; j += 2) {
        std::uint32_t four[4];
        read_right<StageB, BByK>(b, column + 8 * j, k, four);
        right[j][0] = four[0];
        right[j][1] = four[1];
        right[j + 1][0] = four[2];
        right[j + 1][1] = four[3];
      }
#pragma unroll
      for (int i = 0; i < kHeight; ++i)
#pragma unroll
        for (int j = 0; j < kWidth; ++j)
          if constexpr (kIsHalf)
            multiply_bf16(sums[i][j], left[i], right[j]);
          else
            multiply_tf32(sums[i][j], left[i], right[j]);
    }
  }

  template <bool, bool, int Pitch>
  __device__ void store(float* room) const {
    const int warp = threadIdx.x / kWarp % kWarps, lane = threadIdx.x % kWarp;
    if (Shares > 1) room += threadIdx.x / (kWarps * kWarp) * (Rows * Pitch);
    const int row = warp / WarpsAcross * (Rows / WarpsDown) + lane / 4;
    const int column = warp % WarpsAcross * (Columns / WarpsAcross) + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < kHeight; ++i)
#pragma unroll
      for (int j = 0; j < kWidth; ++j)
#pragma unroll
        for (int half = 0; half < 2; ++half)
          *reinterpret_cast<float2*>(room + (row + 16 * i + 8 * half) * Pitch + column + 8 * j) =
              make_float2(sums[i][j][2 * half], sums[i][j][2 * half + 1]);
  }

 private:
  // 16 rows of a from k on, as a piece reads them.
  template <typename Layout, bool IsByK>
  static __device__ void read_left(const Element* stage, int row, int k, std::uint32_t* to) {
    const int lane = threadIdx.x % kWarp, line = lane % 8, matrix = lane / 8;
    if constexpr (kIsHalf && IsByK) {
      read_transposed(to, stage + Layout::place(row + matrix % 2 * 8, k + matrix / 2 * 8 + line));
    } else if constexpr (kIsHalf) {
      read_matrices(to, stage + Layout::place(row + matrix % 2 * 8 + line, k + matrix / 2 * 8));
    } else {
      if constexpr (IsByK) {
#pragma unroll
        for (int part = 0; part < 4; ++part)
          to[part] = bits_of(
              stage[Layout::place(row + lane / 4 + part % 2 * 8, k + lane % 4 + part / 2 * 4)]);
      } else {
        read_matrices(to, stage + Layout::place(row + matrix % 2 * 8 + line, k + matrix / 2 * 4));
      }
      round_four(to);
    }
  }
  // 16 columns of b from k on: what two pieces read.
  template <typename Layout, bool IsByK>
  static __device__ void read_right(const Element* stage, int column, int k, std::uint32_t* to) {
    const int lane = threadIdx.x % kWarp, line = lane % 8, matrix = lane / 8;
    if constexpr (kIsHalf && IsByK) {
      read_transposed(to,
                      stage + Layout::place(column + matrix / 2 * 8, k + matrix % 2 * 8 + line));
    } else if constexpr (kIsHalf) {
      read_matrices(to, stage + Layout::place(column + matrix / 2 * 8 + line, k + matrix % 2 * 8));
    } else {
      if constexpr (IsByK) {
#pragma unroll
        for (int part = 0; part < 4; ++part)
          to[part] = bits_of(
              stage[Layout::place(column + lane / 4 + part / 2 * 8, k + lane % 4 + part % 2 * 4)]);
      } else {
        read_matrices(to,
                      stage + Layout::place(column + matrix / 2 * 8 + line, k + matrix % 2 * 4));
      }
      round_four(to);
    }
  }
  static __device__ void round_four(std::uint32_t* words) {
#pragma unroll
    for (int i = 0; i < 4; ++i) words[i] = to_tf32(__uint_as_float(words[i]));
  }
};

}  // namespace lathe::engine::cuda
