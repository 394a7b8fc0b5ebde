#include "lathe/engine/cpu/bf16_kernels.h"

#include "lathe/engine/cpu/tile_registers.h"

namespace lathe::engine {

namespace bf16_plain {
extern const Bf16Kernels bf16_table;
}
namespace bf16_avx2 {
extern const Bf16Kernels bf16_table;
}
namespace bf16_avx512 {
extern const Bf16Kernels bf16_table;
}
namespace bf16_avx512bf16 {
extern const Bf16Kernels bf16_table;
}
namespace bf16_amx {
extern const Bf16Kernels bf16_table;
}
namespace bf16_tiles {
extern const Bf16Kernels bf16_table;
}

namespace {

bool has_bf16_instruction() {
  return is_supported(Isa::Avx512) && __builtin_cpu_supports("avx512bf16");
}

}  // namespace

const Bf16Kernels& bf16_kernels(Isa isa) {
  if (isa == Isa::Avx512 && has_bf16_tiles()) return bf16_amx::bf16_table;
  if (isa == Isa::Avx512 && has_bf16_instruction()) return bf16_avx512bf16::bf16_table;
  return choose(isa, bf16_plain::bf16_table, bf16_avx2::bf16_table, bf16_avx512::bf16_table);
}

std::vector<const Bf16Kernels*> every_bf16_kernels() {
  std::vector<const Bf16Kernels*> result = {&bf16_plain::bf16_table};
  if (is_supported(Isa::Avx2)) result.push_back(&bf16_avx2::bf16_table);
  if (is_supported(Isa::Avx512)) {
    result.push_back(&bf16_avx512::bf16_table);
    result.push_back(&bf16_tiles::bf16_table);
  }
  if (has_bf16_instruction()) result.push_back(&bf16_avx512bf16::bf16_table);
  if (has_bf16_tiles()) result.push_back(&bf16_amx::bf16_table);
  return result;
}

}  // namespace lathe::engine
