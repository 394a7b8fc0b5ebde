#pragma once

#include <cstdint>
#include <vector>

#include "lathe/engine/cpu/split_window_table.h"

namespace lathe::engine {

/// Numbers `count` behind others.
Lying behind(Lying numbers, std::int64_t count);
Written behind(Written numbers, std::int64_t count);

/// So many of them as floats: where they lie, or in `memory`.
const float* as_floats(Lying numbers, std::int64_t count, std::vector<float>& memory);
/// Rounds floats to the nearest bfloat16 numbers, ties to even.
void round_floats(float* values, std::int64_t count);
/// Writes floats, rounded like that where they lie as bfloat16 numbers.
void put_floats(const float* from, std::int64_t count, Written to);

}  // namespace lathe::engine
