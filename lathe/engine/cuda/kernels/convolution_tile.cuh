#pragma once

// The product of two tiles in shared memory, rows of 128 bytes of depth each, whatever the
// precision: chunks of 16 bytes are exchanged by the row's number, as Hopper's products of a group
// of warps want them and as 8 rows of one chunk lie in different banks.
//
// A warp has 16 rows; number i of lane 4 g + t for column block n is the sum of row g + i / 2 * 8
// and column 8 n + 2 t + i % 2, in every precision, so that what follows is the same.

#include "lathe/engine/cuda/arguments/convolution.h"
#include "lathe/engine/cuda/kernels/attention_group.cuh"

namespace lathe::engine::cuda {

/// Where a chunk of a row lies, in bytes.
__device__ inline int place_of_chunk(int row, int chunk) {
  return row * kDepthBytes + (chunk ^ (row & 7)) * kChunkBytes;
}

#define LATHE_FOUR(s, n) "+f"(s[n][0]), "+f"(s[n][1]), "+f"(s[n][2]), "+f"(s[n][3])
#define LATHE_SIXTEEN(s, n) \
  LATHE_FOUR(s, n), LATHE_FOUR(s, n + 1), LATHE_FOUR(s, n + 2), LATHE_FOUR(s, n + 3)

/// sums += 64 rows by 8 N columns of 32 bytes of depth, by four warps together.
__device__ inline void add_group(Accumulator (&sums)[4], std::uint64_t left, std::uint64_t right) {
  asm volatile(
      "{.reg .pred p; setp.eq.b32 p, 0, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, "
      "%16, %17, p, 1, 1, 0, 0;}"
      : LATHE_SIXTEEN(sums, 0)
      : "l"(left), "l"(right));
}
__device__ inline void add_group(Accumulator (&sums)[8], std::uint64_t left, std::uint64_t right) {
  asm volatile(
      "{.reg .pred p; setp.eq.b32 p, 0, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "%32, %33, p, 1, 1, 0, 0;}"
      : LATHE_SIXTEEN(sums, 0), LATHE_SIXTEEN(sums, 4)
      : "l"(left), "l"(right));
}
__device__ inline void add_group(Accumulator (&sums)[16], std::uint64_t left, std::uint64_t right) {
  asm volatile(
      "{.reg .pred p; setp.eq.b32 p, 0, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, p, 1, 1, 0, 0;}"
      : LATHE_SIXTEEN(sums, 0), LATHE_SIXTEEN(sums, 4), LATHE_SIXTEEN(sums, 8),
        LATHE_SIXTEEN(sums, 12)
      : "l"(left), "l"(right));
}
__device__ inline void add_group(Accumulator (&sums)[32], std::uint64_t left, std::uint64_t right) {
  asm volatile(
      "{.reg .pred p; setp.eq.b32 p, 0, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, "
      "%111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, "
      "%125, %126, %127}, "
      "%128, %129, p, 1, 1, 0, 0;}"
      : LATHE_SIXTEEN(sums, 0), LATHE_SIXTEEN(sums, 4), LATHE_SIXTEEN(sums, 8),
        LATHE_SIXTEEN(sums, 12), LATHE_SIXTEEN(sums, 16), LATHE_SIXTEEN(sums, 20),
        LATHE_SIXTEEN(sums, 24), LATHE_SIXTEEN(sums, 28)
      : "l"(left), "l"(right));
}
#undef LATHE_SIXTEEN
#undef LATHE_FOUR

/// Products of a precision: they begin, and are there when they have been awaited.
template <Precision P, int Columns>
struct TileProducts {
  static constexpr bool kIsGroup = kHasGroupProducts && P == Precision::Bf16;
  static constexpr int kBlocks = Columns / 8;
  using Sums = Accumulator[kBlocks];

  /// What this thread has copied is there for whoever meets it.
  __device__ static void publish() {
    if constexpr (kIsGroup) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  /// Until at most `Open` of the last products are under way.
  template <int Open>
  __device__ static void await() {
    if constexpr (kIsGroup)
      asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Open) : "memory");
  }

  /// sums += the rows of this thread's warp by all columns.
  __device__ static void begin(const std::byte* left, const std::byte* right, int warp, int lane,
                               Sums& sums) {
    if constexpr (kIsGroup) {
      pin(sums);
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
      const std::uint64_t lefts = describe(left + warp / 4 * 64 * kDepthBytes);
      const std::uint64_t rights = describe(right);
#pragma unroll
      for (int step = 0; step < kDepthBytes / 32; ++step)
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
    for (int step = 0; step < kDepthBytes / 32; ++step) {
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
