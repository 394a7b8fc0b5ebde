// The rounding kernels for avx512. Everything is in this file's own namespace and nothing inline
// comes from outside it: see kernel_table.h.

// g++ 12 takes the "undefined" operands in its own intrinsics for uninitialised variables.
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "lathe/numerics/kernels/kernel_table.h"

// A vector that is passed to a function that is not inlined goes through memory.
#define LATHE_KERNEL_INLINE inline __attribute__((always_inline))
// A kernel that several places call is compiled once.
#define LATHE_KERNEL_APART inline __attribute__((noinline))

namespace lathe::numerics::avx512 {

constexpr const char* kIsa = "avx512";
// clang-format off
#include "lathe/numerics/kernels/vector_avx512.h"
#include "lathe/numerics/kernels/every_kernel.inl.h"
// clang-format on

}  // namespace lathe::numerics::avx512
