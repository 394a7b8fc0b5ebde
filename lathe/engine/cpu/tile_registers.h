#pragma once

namespace lathe::engine {

/// Whether the processor has AMX's tile registers and the system lets this process use them.
bool has_tile_registers();
/// Whether they also multiply bfloat16 numbers.
bool has_bf16_tiles();

}  // namespace lathe::engine
