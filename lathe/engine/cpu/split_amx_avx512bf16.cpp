// Products of floats in three parts, in the tile registers of AMX. Everything is in this file's own
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
#include "lathe/engine/cpu/split_table.h"

namespace lathe::engine::split_amx {

constexpr const char* kName = "split_amx";
// The order is that of use.
// clang-format off
#include "lathe/engine/cpu/vector_avx512.h"
#include "lathe/engine/cpu/lanes.inl.h"
#include "lathe/engine/cpu/math.inl.h"
#include "lathe/engine/cpu/elementwise.inl.h"
#include "lathe/engine/cpu/gemm.inl.h"
#include "lathe/engine/cpu/streams_avx512.h"
#include "lathe/engine/cpu/gemm_block.inl.h"
#include "lathe/engine/cpu/code_numbers_avx512.h"
#include "lathe/engine/cpu/code_scales.inl.h"
#include "lathe/engine/cpu/code_no_digits.h"
#include "lathe/engine/cpu/code_fours_avx512.h"
#include "lathe/engine/cpu/code_widened.inl.h"
#include "lathe/engine/cpu/tiles_amx.h"
#include "lathe/engine/cpu/tile_sums.inl.h"
#include "lathe/engine/cpu/split_parts.inl.h"
#include "lathe/engine/cpu/split_gemm.inl.h"
#include "lathe/engine/cpu/split_lying.inl.h"
#include "lathe/engine/cpu/split_block.inl.h"
#include "lathe/engine/cpu/split_widened.inl.h"
// clang-format on

}  // namespace lathe::engine::split_amx
