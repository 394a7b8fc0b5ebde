#pragma once

// Products of a group of four warps, 64 rows of a tile at a time.
//
// Hopper has instructions of a whole group, which read tiles from shared memory by themselves and
// go on while the group does other work; elsewhere each warp multiplies its 16 rows. Rows of 128
// bytes lie as those instructions want them, so that a tile serves both.

#include "lathe/engine/cuda/kernels/attention_tensor.cuh"

namespace lathe::engine::cuda {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
inline constexpr bool kHasGroupProducts = true;
#else
inline constexpr bool kHasGroupProducts = false;
#endif

/// How a block works: `Owners` groups of warps have 64 rows each and share what they go through;
/// `Sharers` of them have the same rows and take every so many-th tile each, joined at the end.
template <int OfOwners, int OfSharers>
struct Division {
  static constexpr int kOwners = OfOwners, kSharers = OfSharers;
  static constexpr int kRows = kTile * kOwners;
  static constexpr int kTeam = kTensorThreads * kOwners;  ///< threads that go through one tile
  static constexpr int kThreads = kTeam * kSharers;
};

/// Makes what this thread has written to shared memory visible to products of a group, once all
/// have met.
template <typename Products>
__device__ void publish() {
  if constexpr (kHasGroupProducts) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/// A tile of rows of 128 bytes, from a row divisible by 8 on: 1024 bytes to the next eight rows.
template <typename Element>
__device__ std::uint64_t describe(const Element* tile) {
  return shared_address(tile) >> 4 | std::uint64_t{1} << 16 | std::uint64_t{1024 >> 4} << 32 |
         std::uint64_t{1} << 62;
}

/// Keeps the compiler from moving reads and writes of what products work on.
template <int N>
__device__ void pin(Accumulator (&sums)[N]) {
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) asm volatile("" : "+f"(sums[n][i])::"memory");
}

/// Of rows g and g + 8.
template <int N>
__device__ void scale_rows(Accumulator (&sums)[N], const float (&factors)[2]) {
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) sums[n][i] *= factors[i / 2];
}

#define LATHE_SUMS(s)                                                                           \
  "+f"(s[0][0]), "+f"(s[0][1]), "+f"(s[0][2]), "+f"(s[0][3]), "+f"(s[1][0]), "+f"(s[1][1]),     \
      "+f"(s[1][2]), "+f"(s[1][3]), "+f"(s[2][0]), "+f"(s[2][1]), "+f"(s[2][2]), "+f"(s[2][3]), \
      "+f"(s[3][0]), "+f"(s[3][1]), "+f"(s[3][2]), "+f"(s[3][3]), "+f"(s[4][0]), "+f"(s[4][1]), \
      "+f"(s[4][2]), "+f"(s[4][3]), "+f"(s[5][0]), "+f"(s[5][1]), "+f"(s[5][2]), "+f"(s[5][3]), \
      "+f"(s[6][0]), "+f"(s[6][1]), "+f"(s[6][2]), "+f"(s[6][3]), "+f"(s[7][0]), "+f"(s[7][1]), \
      "+f"(s[7][2]), "+f"(s[7][3])
#define LATHE_SUM_NAMES                                                                         \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, " \
  "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}"

/// sums = or += 64 rows of 32 bytes by 64 rows of 32 bytes.
template <typename Products>
__device__ void multiply_group(Accumulator (&sums)[8], std::uint64_t left, std::uint64_t right,
                               int adds) {
  if constexpr (Products::kCrosses)
    asm volatile(
        "{.reg .pred p; setp.ne.b32 p, %34, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 " LATHE_SUM_NAMES
        ", %32, %33, p, 1, 1;}"
        : LATHE_SUMS(sums)
        : "l"(left), "l"(right), "r"(adds));
  else
    asm volatile(
        "{.reg .pred p; setp.ne.b32 p, %34, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " LATHE_SUM_NAMES
        ", %32, %33, p, 1, 1, 0, 0;}"
        : LATHE_SUMS(sums)
        : "l"(left), "l"(right), "r"(adds));
}
/// sums += 64 rows of 32 bytes of weights by as many rows of 64 numbers.
template <typename Products>
__device__ void weight_group(Accumulator (&sums)[8], const Fragment& left, std::uint64_t right) {
  if constexpr (Products::kCrosses)
    asm volatile(
        "{.reg .pred p; setp.eq.b32 p, 0, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 " LATHE_SUM_NAMES
        ", {%32, %33, %34, %35}, %36, p, 1, 1;}"
        : LATHE_SUMS(sums)
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right));
  else
    asm volatile(
        "{.reg .pred p; setp.eq.b32 p, 0, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " LATHE_SUM_NAMES
        ", {%32, %33, %34, %35}, %36, p, 1, 1, 1;}"
        : LATHE_SUMS(sums)
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right));
}
#undef LATHE_SUMS
#undef LATHE_SUM_NAMES

/// Products of tiles of rows of D numbers. Some are opened, with their sums pinned, and then each
/// begins; its sums are there, and what it reads is free, registers too, when it has been awaited.
template <typename Products, int D>
struct GroupProducts {
  using Element = typename Products::Element;
  static constexpr bool kIsWhole = kHasGroupProducts && D == 64;
  static constexpr int kSteps = D / Products::kStep;

  __device__ static void open() {
    if constexpr (kIsWhole) asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  }
  /// sums = 64 rows of one tile by the 8 N rows of another.
  template <int N>
  __device__ static void multiply(const Element* left, const Element* right, int warp, int lane,
                                  Accumulator (&sums)[N]) {
    if constexpr (kIsWhole) {
      static_assert(N == 8);
      const std::uint64_t lefts = describe(left), rights = describe(right);
#pragma unroll
      for (int step = 0; step < kSteps; ++step)
        multiply_group<Products>(sums, lefts + units(place_of_step(step)),
                                 rights + units(place_of_step(step)), step > 0);
      close();
    } else {
      multiply_tiles<Products, D, N>(left, warp * 16, right, lane, sums);
    }
  }
  /// sums += weights, as left operands, by the rows of a tile, or of a crossed one.
  template <int Steps>
  __device__ static void add(const Fragment (&weights)[Steps], const Element* tile, int lane,
                             Accumulator (&sums)[D / 8]) {
    if constexpr (kIsWhole) {
      const std::uint64_t tiles = describe(tile);
#pragma unroll
      for (int step = 0; step < Steps; ++step)
        weight_group<Products>(
            sums, weights[step],
            tiles + units(Products::kCrosses ? place_of_step(step) : step * Products::kStep * D));
      close();
    } else {
      add_weighted<Products, D, Steps>(weights, tile, lane, sums);
    }
  }
  /// Waits until at most `Open` of the last products are under way.
  template <int Open>
  __device__ static void await() {
    if constexpr (kIsWhole)
      asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Open) : "memory");
  }

 private:
  /// Where the numbers of a step begin in a tile of 64 rows: four steps are 128 bytes, a slab.
  __device__ static constexpr int place_of_step(int step) {
    return (step / 4 * 4 * kTile + step % 4) * Products::kStep;
  }
  /// Of descriptions: 16 bytes.
  __device__ static constexpr unsigned units(int elements) {
    return static_cast<unsigned>(elements * static_cast<int>(sizeof(Element)) / 16);
  }
  __device__ static void close() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
};

}  // namespace lathe::engine::cuda
