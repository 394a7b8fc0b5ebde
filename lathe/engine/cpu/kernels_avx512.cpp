// The float32 kernels for avx512. Everything is in this file's own namespace and nothing inline
// comes from outside it: see kernel_table.h.

// g++ 12 takes the "undefined" operands in its own intrinsics for uninitialised variables.
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "lathe/engine/cpu/ask.h"
#include "lathe/engine/cpu/kernel_table.h"

namespace lathe::engine::avx512 {

constexpr const char* kIsa = "avx512";
// clang-format off
#include "lathe/engine/cpu/vector_avx512.h"
#include "lathe/engine/cpu/every_kernel.inl.h"
// clang-format on

}  // namespace lathe::engine::avx512
