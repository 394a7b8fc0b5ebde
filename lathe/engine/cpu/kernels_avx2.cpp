// The float32 kernels for avx2. Everything is in this file's own namespace and nothing inline comes
// from outside it: see kernel_table.h.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "lathe/engine/cpu/ask.h"
#include "lathe/engine/cpu/kernel_table.h"

namespace lathe::engine::avx2 {

constexpr const char* kIsa = "avx2";
// clang-format off
#include "lathe/engine/cpu/vector_avx2.h"
#include "lathe/engine/cpu/every_kernel.inl.h"
// clang-format on

}  // namespace lathe::engine::avx2
