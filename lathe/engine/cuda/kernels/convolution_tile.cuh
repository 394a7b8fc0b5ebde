#pragma once

// The product of two tiles in shared memory, rows of 128 bytes of depth each, whatever the
// precision: chunks of 16 bytes are exchanged by the row's number, as Hopper's products of a group
// of warps want them and as 8 rows of one chunk lie in different banks.
//
// A warp has 16 rows; number i of lane 4 g + t for column block n is the sum of row g + i / 2 * 8
// and column 8 n + 2 t + i % 2, in every precision, so that what follows is the same.

#include "lathe/engine/cuda/arguments/convolution.h"
#include "lathe/engine/cuda/kernels/convolution_group.cuh"

namespace lathe::engine::cuda {

/// Where a chunk of a row lies, in bytes.
__device__ inline int place_of_chunk(int row, int chunk) {
  return row * kDepthBytes + (chunk ^ (row & 7)) * kChunkBytes;
}

/// Products of a precision: they begin, and are there when they have been awaited.
template <Precision P, int Columns>
struct TileProducts {
  static constexpr bool kIsGroup = kHasGroupProducts && P != Precision::Float32;
  static constexpr bool kHoldsRows = kIsGroup && P == Precision::Tf32;
  static constexpr int kBlocks = Columns / 8, kSteps = kDepthBytes / 32;
  using Sums = Accumulator[kBlocks];

  /// Rows that products under way read in registers.
  struct Held {
    Fragment rows[kHoldsRows ? kSteps : 1];
  };
  __device__ static void keep(Held& held) {
    if constexpr (kHoldsRows) {
#pragma unroll
      for (Fragment& four : held.rows)
#pragma unroll
        for (std::uint32_t& number : four) asm volatile("" : "+r"(number)::"memory");
    }
  }

  /// What this thread has copied is there for whoever meets it.
  __device__ static void publish() {
    if constexpr (kIsGroup) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  /// Until at most `Open` of the last products are under way.
  template <int Open>
  __device__ static void await(Held& held) {
    static_assert(Open == 0 || !kHoldsRows, "registers are free when what reads them is over");
    if constexpr (kIsGroup)
      asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Open) : "memory");
    keep(held);
  }

  /// sums += the rows of this thread's warp by all columns.
  __device__ static void begin(const std::byte* left, const std::byte* right, int warp, int lane,
                               Held& held, Sums& sums) {
    if constexpr (kHoldsRows) {
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        Fragment& rows = held.rows[step];
        load_matrices(left + place_of_chunk(warp * 16 + lane % 16, step * 2 + lane / 16), rows);
#pragma unroll
        for (std::uint32_t& number : rows) number = to_tf32(__uint_as_float(number));
      }
      keep(held);
      pin(sums);
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
      const std::uint64_t rights = describe(right);
#pragma unroll
      for (int step = 0; step < kSteps; ++step)
        add_group(sums, held.rows[step], rights + static_cast<unsigned>(step * 2));
      asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    } else if constexpr (kIsGroup) {
      pin(sums);
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
      const std::uint64_t lefts = describe(left + warp / 4 * 64 * kDepthBytes);
      const std::uint64_t rights = describe(right);
#pragma unroll
      for (int step = 0; step < kSteps; ++step)
        add_group(sums, lefts + static_cast<unsigned>(step * 2),
                  rights + static_cast<unsigned>(step * 2));
      asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    } else if constexpr (P == Precision::Float32) {
      multiply_floats(left, right, warp, lane, sums);
    } else {
      multiply_fragments(left, right, warp, lane, sums);
    }
  }

 private:
  __device__ static void multiply_fragments(const std::byte* left, const std::byte* right, int warp,
                                            int lane, Sums& sums) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      Fragment a;
      load_matrices(left + place_of_chunk(warp * 16 + lane % 16, step * 2 + lane / 16), a);
      if constexpr (P == Precision::Tf32)
#pragma unroll
        for (std::uint32_t& number : a) number = to_tf32(__uint_as_float(number));
#pragma unroll
      for (int n = 0; n < kBlocks; n += 2) {
        Fragment b;
        load_matrices(
            right + place_of_chunk(n * 8 + lane % 8 + lane / 16 * 8, step * 2 + lane / 8 % 2), b);
        if constexpr (P == Precision::Tf32) {
          Tf32Products::multiply(a, b[0], b[1], sums[n]);
          Tf32Products::multiply(a, b[2], b[3], sums[n + 1]);
        } else {
          Bf16Products::multiply(a, b[0], b[1], sums[n]);
          Bf16Products::multiply(a, b[2], b[3], sums[n + 1]);
        }
      }
    }
  }

  __device__ static float4 floats_at(const std::byte* tile, int row, int chunk) {
    return *reinterpret_cast<const float4*>(tile + place_of_chunk(row, chunk));
  }
  __device__ static float add_four(float4 a, float4 b, float sum) {
    return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, fmaf(a.x, b.x, sum))));
  }
  __device__ static void multiply_floats(const std::byte* left, const std::byte* right, int warp,
                                         int lane, Sums& sums) {
    const int g = lane / 4, t = lane % 4;
#pragma unroll 2
    for (int chunk = 0; chunk < kDepthBytes / kChunkBytes; ++chunk) {
      const float4 a0 = floats_at(left, warp * 16 + g, chunk);
      const float4 a1 = floats_at(left, warp * 16 + g + 8, chunk);
#pragma unroll
      for (int n = 0; n < kBlocks; ++n) {
        const float4 b0 = floats_at(right, n * 8 + 2 * t, chunk);
        const float4 b1 = floats_at(right, n * 8 + 2 * t + 1, chunk);
        sums[n][0] = add_four(a0, b0, sums[n][0]);
        sums[n][1] = add_four(a0, b1, sums[n][1]);
        sums[n][2] = add_four(a1, b0, sums[n][2]);
        sums[n][3] = add_four(a1, b1, sums[n][3]);
      }
    }
  }
};

}  // namespace lathe::engine::cuda
