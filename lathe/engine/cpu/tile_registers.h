#pragma once

namespace lathe::engine {

/// Whether the processor has AMX's tile registers and the system lets this process use them.
bool has_tile_registers();

}  // namespace lathe::engine
