#pragma once

// Products of a group of four warps, 64 rows by as many columns as there are sums for, that tiles
// of convolutions are made of: sums += 32 bytes of depth.

#include "lathe/engine/cuda/kernels/attention_group.cuh"

namespace lathe::engine::cuda {

#define LATHE_FOUR(s, n) "+f"(s[n][0]), "+f"(s[n][1]), "+f"(s[n][2]), "+f"(s[n][3])
#define LATHE_SUMS_16(s, n) \
  LATHE_FOUR(s, n), LATHE_FOUR(s, n + 1), LATHE_FOUR(s, n + 2), LATHE_FOUR(s, n + 3)
#define LATHE_SUMS_32(s, n) LATHE_SUMS_16(s, n), LATHE_SUMS_16(s, n + 4)
#define LATHE_SUMS_64(s, n) LATHE_SUMS_32(s, n), LATHE_SUMS_32(s, n + 8)
#define LATHE_SUMS_128(s, n) LATHE_SUMS_64(s, n), LATHE_SUMS_64(s, n + 16)
#define LATHE_NAMES_16 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define LATHE_NAMES_32 \
  LATHE_NAMES_16       \
  ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define LATHE_NAMES_64                                                                 \
  LATHE_NAMES_32                                                                       \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define LATHE_NAMES_128                                                                  \
  LATHE_NAMES_64                                                                         \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "   \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "     \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, "     \
  "%110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, " \
  "%124, %125, %126, %127"

// Of bfloat16, both operands in shared memory.
#define LATHE_BF16_GROUP(columns, count, operands)                                                 \
  __device__ inline void add_group(Accumulator(&sums)[columns / 8], std::uint64_t left,            \
                                   std::uint64_t right) {                                          \
    asm volatile("{.reg .pred p; setp.eq.b32 p, 0, 0;\nwgmma.mma_async.sync.aligned.m64n" #columns \
                 "k16.f32.bf16.bf16 {" LATHE_NAMES_##count "}, " operands ", p, 1, 1, 0, 0;}"      \
                 : LATHE_SUMS_##count(sums, 0)                                                     \
                 : "l"(left), "l"(right));                                                         \
  }
LATHE_BF16_GROUP(32, 16, "%16, %17")
LATHE_BF16_GROUP(64, 32, "%32, %33")
LATHE_BF16_GROUP(128, 64, "%64, %65")
LATHE_BF16_GROUP(256, 128, "%128, %129")
#undef LATHE_BF16_GROUP

// Of TF32, the left one in registers: there it can be rounded first, which the hardware does not.
#define LATHE_TF32_GROUP(columns, count, operands)                                                 \
  __device__ inline void add_group(Accumulator(&sums)[columns / 8], const Fragment& left,          \
                                   std::uint64_t right) {                                          \
    asm volatile("{.reg .pred p; setp.eq.b32 p, 0, 0;\nwgmma.mma_async.sync.aligned.m64n" #columns \
                 "k8.f32.tf32.tf32 {" LATHE_NAMES_##count "}, " operands ", p, 1, 1;}"             \
                 : LATHE_SUMS_##count(sums, 0)                                                     \
                 : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right));            \
  }
LATHE_TF32_GROUP(32, 16, "{%16, %17, %18, %19}, %20")
LATHE_TF32_GROUP(64, 32, "{%32, %33, %34, %35}, %36")
LATHE_TF32_GROUP(128, 64, "{%64, %65, %66, %67}, %68")
#undef LATHE_TF32_GROUP

#undef LATHE_NAMES_128
#undef LATHE_NAMES_64
#undef LATHE_NAMES_32
#undef LATHE_NAMES_16
#undef LATHE_SUMS_128
#undef LATHE_SUMS_64
#undef LATHE_SUMS_32
#undef LATHE_SUMS_16
#undef LATHE_FOUR

}  // namespace lathe::engine::cuda
