// Convolutions of rounded numbers by AVX512-BF16 alone. Everything is in this file's own namespace
// and nothing inline comes from outside it: see kernel_table.h.

// g++ 12 takes the "undefined" operands in its own intrinsics for uninitialised variables.
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "lathe/engine/cpu/ask.h"
#include "lathe/engine/cpu/split_table.h"
#include "lathe/engine/cpu/split_window_table.h"

namespace lathe::engine::split_window_dots {

// The order is that of use.
// clang-format off
#include "lathe/engine/cpu/vector_avx512.h"
#include "lathe/engine/cpu/split_parts.inl.h"
#include "lathe/engine/cpu/window_frame.inl.h"
#include "lathe/engine/cpu/rounded_layout.inl.h"
#include "lathe/engine/cpu/window_gradient_layout.inl.h"
#include "lathe/engine/cpu/rounded_dots.inl.h"
#include "lathe/engine/cpu/rounded_windows.inl.h"
#include "lathe/engine/cpu/rounded_gradients.inl.h"
// clang-format on

inline std::int64_t scratch_bytes(const SplitFrame& frame, std::int64_t n) {
  return RoundedLayout(frame).size(n);
}

extern const SplitWindowKernels split_window_table;
const SplitWindowKernels split_window_table = {
    .name = "split_window_dots",
    .splits = false,
    .filters_size = dot_filters_size,
    .pack = pack_rounded_dots,
    .scratch_bytes = scratch_bytes,
    .multiply = multiply_rounded_windows,
    .gradient_scratch_bytes = rounded_gradient_scratch_bytes,
    .add_gradient = add_rounded_gradient,
    .rounded_gradients_scratch_bytes = rounded_gradients_scratch_bytes,
    .add_rounded_gradients = add_rounded_gradients,
};

}  // namespace lathe::engine::split_window_dots
