#include "lathe/engine/cpu/tile_registers.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "lathe/core/isa.h"

namespace lathe::engine {

// The system keeps room for a thread's tiles only after the process has asked for it, once.
bool has_tile_registers() {
  static const bool granted = [] {
    constexpr int kRequestPermission = 0x1023, kTileData = 18;
    return is_supported(Isa::Avx512) && __builtin_cpu_supports("amx-tile") &&
           syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  }();
  return granted;
}

bool has_bf16_tiles() {
  return has_tile_registers() && __builtin_cpu_supports("amx-bf16");
}

bool has_bf16_conversion() {
  return is_supported(Isa::Avx512) && __builtin_cpu_supports("avx512bf16");
}

}  // namespace lathe::engine
