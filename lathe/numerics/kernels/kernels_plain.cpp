// The rounding kernels for plain. Everything is in this file's own namespace and nothing inline
// comes from outside it: see kernel_table.h.

#ifdef __SSE2__
#include <xmmintrin.h>
#endif

#include <cstddef>
#include <cstdint>

#include "lathe/numerics/kernels/kernel_table.h"

// A vector that is passed to a function that is not inlined goes through memory.
#define LATHE_KERNEL_INLINE inline __attribute__((always_inline))
// A kernel that several places call is compiled once.
#define LATHE_KERNEL_APART inline __attribute__((noinline))

namespace lathe::numerics::plain {

constexpr const char* kIsa = "plain";
// clang-format off
#include "lathe/numerics/kernels/vector_plain.h"
#include "lathe/numerics/kernels/every_kernel.inl.h"
// clang-format on

}  // namespace lathe::numerics::plain
