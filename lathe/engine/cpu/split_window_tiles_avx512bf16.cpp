// Convolutions of floats in three parts, on emulated tiles, for tests. Everything is in this file's
// own namespace and nothing inline comes from outside it: see kernel_table.h.

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

namespace lathe::engine::split_window_tiles {

constexpr const char* kName = "emulated_split_window_amx";
// The order is that of use.
// clang-format off
#include "lathe/engine/cpu/vector_avx512.h"
#include "lathe/engine/cpu/tiles_emulated.h"
#include "lathe/engine/cpu/split_parts.inl.h"
#include "lathe/engine/cpu/window_frame.inl.h"
#include "lathe/engine/cpu/split_windows.inl.h"
#include "lathe/engine/cpu/rounded_layout.inl.h"
#include "lathe/engine/cpu/rounded_tiles.inl.h"
#include "lathe/engine/cpu/rounded_windows.inl.h"
#include "lathe/engine/cpu/window_gradient_layout.inl.h"
#include "lathe/engine/cpu/split_window_gradient.inl.h"
#include "lathe/engine/cpu/rounded_gradients.inl.h"
#include "lathe/engine/cpu/split_window_entries.inl.h"
// clang-format on

}  // namespace lathe::engine::split_window_tiles
