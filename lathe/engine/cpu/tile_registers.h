#pragma once

namespace lathe::engine {

/// Whether the processor has AMX's tile registers and the system lets this process use them.
bool has_tile_registers();
/// Whether they also multiply bfloat16 numbers.
bool has_bf16_tiles();
/// Whether vectors of floats become bfloat16 numbers by an instruction (AVX512-BF16).
bool has_bf16_conversion();

}  // namespace lathe::engine
