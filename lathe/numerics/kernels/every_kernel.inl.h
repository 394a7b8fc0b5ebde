// The rounding kernels of one instruction set and the table of them, for kernels_<isa>.cpp:
// included inside that set's namespace, after its vectors and its name `kIsa`.

// The order is that of use.
// clang-format off
#include "lathe/numerics/kernels/elements.inl.h"
#include "lathe/numerics/kernels/runs.inl.h"
#include "lathe/numerics/kernels/blocks.inl.h"
#include "lathe/numerics/kernels/given.inl.h"
#include "lathe/numerics/kernels/decode.inl.h"
#include "lathe/numerics/kernels/statistics.inl.h"
#include "lathe/numerics/kernels/log2.inl.h"
#include "lathe/numerics/kernels/mase_elements.inl.h"
#include "lathe/numerics/kernels/mase_blocks.inl.h"
// clang-format on

extern const Kernels table;
const Kernels table = {
    .isa = kIsa,
    .round_run = round_run,
    .round_given_blocks = round_given_blocks,
    .round_blocks = round_blocks,
    .round_scaled_blocks = round_scaled_blocks,
    .decode_bytes = decode_bytes,
    .unpack_bytes = unpack_bytes,
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
