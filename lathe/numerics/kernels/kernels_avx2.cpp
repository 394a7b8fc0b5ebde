// The rounding kernels for avx2. Everything is in this file's own namespace and nothing inline
// comes from outside it: see kernel_table.h.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "lathe/numerics/kernels/kernel_table.h"

// A vector that is passed to a function that is not inlined goes through memory.
#define LATHE_KERNEL_INLINE inline __attribute__((always_inline))
// A kernel that several places call is compiled once.
#define LATHE_KERNEL_APART inline __attribute__((noinline))

namespace lathe::numerics::avx2 {

constexpr const char* kIsa = "avx2";
// clang-format off
#include "lathe/numerics/kernels/vector_avx2.h"
#include "lathe/numerics/kernels/every_kernel.inl.h"
// clang-format on

}  // namespace lathe::numerics::avx2
