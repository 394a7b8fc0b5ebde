// Products of bfloat16 numbers in the tile registers of AMX. Everything is in this file's own
// namespace and nothing inline comes from outside it: see kernel_table.h.

// g++ 12 takes the "undefined" operands in its own intrinsics for uninitialised variables.
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "lathe/engine/cpu/ask.h"
#include "lathe/engine/cpu/bf16_table.h"

namespace lathe::engine::bf16_amx {

constexpr const char* kName = "amx";
// The order is that of use.
// clang-format off
#include "lathe/engine/cpu/vector_avx512.h"
#include "lathe/engine/cpu/lanes.inl.h"
#include "lathe/engine/cpu/math.inl.h"
#include "lathe/engine/cpu/elementwise.inl.h"
#include "lathe/engine/cpu/softmax.inl.h"
#include "lathe/engine/cpu/gemm.inl.h"
#include "lathe/engine/cpu/streams_avx512.h"
#include "lathe/engine/cpu/bf16_shape.inl.h"
// clang-format on

// clang-format off
#include "lathe/engine/cpu/tiles_amx.h"
#include "lathe/engine/cpu/tile_sums.inl.h"
#include "lathe/engine/cpu/bf16_tiles.inl.h"
#include "lathe/engine/cpu/bf16_gemm.inl.h"
#include "lathe/engine/cpu/bf16_finish.inl.h"
#include "lathe/engine/cpu/bf16_block.inl.h"
#include "lathe/engine/cpu/bf16_attention.inl.h"
#include "lathe/engine/cpu/bf16_entries.inl.h"
// clang-format on

}  // namespace lathe::engine::bf16_amx
