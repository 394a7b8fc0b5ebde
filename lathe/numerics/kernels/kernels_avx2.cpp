// The rounding kernels for avx2. Everything is in this file's own namespace and nothing inline
// comes from outside it: see kernel_table.h.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "lathe/numerics/kernels/kernel_table.h"

// A vector that is passed to a function that is not inlined goes through memory.
#define LATHE_KERNEL_INLINE inline __attribute__((always_inline))

namespace lathe::numerics::avx2 {

// The order is that of use.
// clang-format off
#include "lathe/numerics/kernels/vector_avx2.h"
#include "lathe/numerics/kernels/elements.inl.h"
#include "lathe/numerics/kernels/runs.inl.h"
#include "lathe/numerics/kernels/blocks.inl.h"
#include "lathe/numerics/kernels/given.inl.h"
#include "lathe/numerics/kernels/statistics.inl.h"
#include "lathe/numerics/kernels/log2.inl.h"
#include "lathe/numerics/kernels/mase_elements.inl.h"
#include "lathe/numerics/kernels/mase_blocks.inl.h"
// clang-format on

extern const Kernels table;
const Kernels table = {
    .isa = "avx2",
    .round_run = round_run,
    .round_given_blocks = round_given_blocks,
    .round_blocks = round_blocks,
    .round_scaled_blocks = round_scaled_blocks,
    .largest_magnitude = largest_magnitude,
    .largest_finite = largest_finite,
    .finite_range = finite_range,
    .magnitudes_above = magnitudes_above,
    .numbers_above = numbers_above,
    .residual_magnitudes = residual_magnitudes,
    .sign_terms = sign_terms,
    .ternary = ternary,
    .mase_run = mase_run,
    .mase_blocks = mase_blocks,
};

}  // namespace lathe::numerics::avx2
