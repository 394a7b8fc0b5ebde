// The float32 kernels of one instruction set and the table of them, for kernels_<isa>.cpp: included
// inside that set's namespace, after its vectors and its name `kIsa`.

// The order is that of use.
// clang-format off
#include "lathe/engine/cpu/lanes.inl.h"
#include "lathe/engine/cpu/math.inl.h"
#include "lathe/engine/cpu/elementwise.inl.h"
#include "lathe/engine/cpu/dropout.inl.h"
#include "lathe/engine/cpu/gemm.inl.h"
#include "lathe/engine/cpu/normalize.inl.h"
#include "lathe/engine/cpu/softmax.inl.h"
#include "lathe/engine/cpu/attention.inl.h"
#include "lathe/engine/cpu/elementwise_backward.inl.h"
#include "lathe/engine/cpu/weight_gradient.inl.h"
#include "lathe/engine/cpu/sum_rows.inl.h"
#include "lathe/engine/cpu/normalize_backward.inl.h"
#include "lathe/engine/cpu/attention_backward.inl.h"
#include "lathe/engine/cpu/cross_entropy.inl.h"
#include "lathe/engine/cpu/optimizer.inl.h"
#include "lathe/engine/cpu/quantize_backward.inl.h"
#include "lathe/engine/cpu/fma_burst.inl.h"
// clang-format on

extern const Kernels table;
const Kernels table = {
    .isa = kIsa,
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
    .dropout_rows = dropout_rows,
    .weight_gradient = weight_gradient,
    .sum_rows_accumulate = sum_rows_accumulate,
    .sum_selected_rows = sum_selected_rows,
    .layer_norm_backward = layer_norm_backward,
    .rms_norm_backward = rms_norm_backward,
    .unary_backward = unary_backward,
    .attention_backward_scratch_size = attention_backward_scratch_size,
    .attention_backward = attention_backward,
    .cross_entropy_rows = cross_entropy_rows,
    .cross_entropy_backward_rows = cross_entropy_backward_rows,
    .adamw = adamw,
    .sgd = sgd,
    .sum_squares = sum_squares,
    .gate = gate,
    .learned_step = learned_step,
    .fma_burst = fma_burst,
};
