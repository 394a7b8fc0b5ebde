// The code for AMX without its instructions, for tests. Everything is in this
// file's own namespace and nothing inline comes from outside it: see kernel_table.h.

// g++ 12 takes the "undefined" operands in its own intrinsics for uninitialised variables.
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "lathe/engine/cpu/code_table.h"

namespace lathe::engine::code_tiles {

constexpr const char* kName = "emulated_amx";
constexpr std::int64_t kDepthGrain = 64;
// Blocks are packed for vectors, which take few rows of them; tiles read the same.
inline bool multiplies_by_tiles(const CodeCut& cut) {
  return cut.blocks == 1;
}
// The order is that of use.
// clang-format off
#include "lathe/engine/cpu/vector_avx512.h"
#include "lathe/engine/cpu/lanes.inl.h"
#include "lathe/engine/cpu/math.inl.h"
#include "lathe/engine/cpu/elementwise.inl.h"
#include "lathe/engine/cpu/softmax.inl.h"
#include "lathe/engine/cpu/gemm.inl.h"
#include "lathe/engine/cpu/gemm_block.inl.h"
#include "lathe/engine/cpu/code_numbers_avx512.h"
#include "lathe/engine/cpu/code_quads_avx512.h"
#include "lathe/engine/cpu/code_encode.inl.h"
#include "lathe/engine/cpu/code_scales.inl.h"
#include "lathe/engine/cpu/code_digits_avx512.h"
#include "lathe/engine/cpu/code_fours_avx512.h"
#include "lathe/engine/cpu/code_widened.inl.h"
#include "lathe/engine/cpu/code_vectors.inl.h"
#include "lathe/engine/cpu/tiles_emulated.h"
#include "lathe/engine/cpu/tile_sums.inl.h"
#include "lathe/engine/cpu/code_block_tiles.inl.h"
#include "lathe/engine/cpu/code_tiles.inl.h"
#include "lathe/engine/cpu/code_gemm.inl.h"
#include "lathe/engine/cpu/code_no_windows.h"
#include "lathe/engine/cpu/code_value_digits_avx512.h"
#include "lathe/engine/cpu/code_attention.inl.h"
#include "lathe/engine/cpu/code_entries.inl.h"
// clang-format on

}  // namespace lathe::engine::code_tiles
