// The float32 kernels of one instruction set and the table of them, for kernels_<isa>.cpp: included
// inside that set's namespace, after its vectors and its name `kIsa`.

// The order is that of use.
// clang-format off
#include "lathe/engine/cpu/lanes.inl.h"
#include "lathe/engine/cpu/math.inl.h"
#include "lathe/engine/cpu/elementwise.inl.h"
#include "lathe/engine/cpu/dropout.inl.h"
#include "lathe/engine/cpu/gemm.inl.h"
#include "lathe/engine/cpu/gemm_block.inl.h"
#include "lathe/engine/cpu/convolve.inl.h"
#include "lathe/engine/cpu/winograd.inl.h"
#include "lathe/engine/cpu/sparse_gemm.inl.h"
#include "lathe/engine/cpu/column_choice.inl.h"
#include "lathe/engine/cpu/normalize.inl.h"
#include "lathe/engine/cpu/softmax.inl.h"
#include "lathe/engine/cpu/rope.inl.h"
#include "lathe/engine/cpu/integer_products.inl.h"
#include "lathe/engine/cpu/weighted_values.inl.h"
#include "lathe/engine/cpu/attention.inl.h"
#include "lathe/engine/cpu/attend_cache.inl.h"
#include "lathe/engine/cpu/elementwise_backward.inl.h"
#include "lathe/engine/cpu/weight_gradient.inl.h"
#include "lathe/engine/cpu/convolve_gradient.inl.h"
#include "lathe/engine/cpu/sum_rows.inl.h"
#include "lathe/engine/cpu/normalize_backward.inl.h"
#include "lathe/engine/cpu/channel_norm.inl.h"
#include "lathe/engine/cpu/softmax_backward.inl.h"
#include "lathe/engine/cpu/attention_backward.inl.h"
#include "lathe/engine/cpu/cross_entropy.inl.h"
#include "lathe/engine/cpu/optimizer.inl.h"
#include "lathe/engine/cpu/quantize_backward.inl.h"
#include "lathe/engine/cpu/fma_burst.inl.h"
// clang-format on

extern const Kernels table;
#define LATHE_TABLE_ENTRY(name) .name = name,
const Kernels table = {.isa = kIsa, LATHE_EVERY_KERNEL(LATHE_TABLE_ENTRY)};
#undef LATHE_TABLE_ENTRY
