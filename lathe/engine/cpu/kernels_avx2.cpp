// The float32 kernels for avx2. Everything is in this file's own namespace and nothing inline comes
// from outside it: see kernel_table.h.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "lathe/engine/cpu/kernel_table.h"

namespace lathe::engine::avx2 {

// The order is that of use.
// clang-format off
#include "lathe/engine/cpu/vector_avx2.h"
#include "lathe/engine/cpu/lanes.inl.h"
#include "lathe/engine/cpu/math.inl.h"
#include "lathe/engine/cpu/elementwise.inl.h"
#include "lathe/engine/cpu/gemm.inl.h"
#include "lathe/engine/cpu/normalize.inl.h"
#include "lathe/engine/cpu/softmax.inl.h"
#include "lathe/engine/cpu/attention.inl.h"
#include "lathe/engine/cpu/fma_burst.inl.h"
// clang-format on

extern const Kernels table;
const Kernels table = {
    .isa = "avx2",
    .packed_size = packed_size,
    .pack_b = pack_b,
    .gemm = gemm,
    .attention_scratch_size = attention_scratch_size,
    .attention = attention,
    .layer_norm = layer_norm,
    .rms_norm = rms_norm,
    .softmax_rows = softmax_rows,
    .log_softmax_rows = log_softmax_rows,
    .unary = unary,
    .binary = binary,
    .embedding_sum = embedding_sum,
    .fma_burst = fma_burst,
};

}  // namespace lathe::engine::avx2
