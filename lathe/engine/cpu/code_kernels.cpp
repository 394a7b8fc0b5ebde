#include "lathe/engine/cpu/code_kernels.h"

#include "lathe/engine/cpu/tile_registers.h"

namespace lathe::engine {

namespace code_plain {
extern const CodeKernels code_table;
}
namespace code_avx2 {
extern const CodeKernels code_table;
}
namespace code_avx512 {
extern const CodeKernels code_table;
}
namespace code_avx512vnni {
extern const CodeKernels code_table;
}
namespace code_amx {
extern const CodeKernels code_table;
}
namespace code_tiles {
extern const CodeKernels code_table;
}

namespace {

bool has_vnni() {
  return is_supported(Isa::Avx512) && __builtin_cpu_supports("avx512vnni");
}

bool has_code_tiles() {
  return has_vnni() && has_tile_registers() && __builtin_cpu_supports("amx-int8");
}

}  // namespace

const CodeKernels& code_kernels(Isa isa) {
  if (isa == Isa::Avx512 && has_code_tiles()) return code_amx::code_table;
  if (isa == Isa::Avx512 && has_vnni()) return code_avx512vnni::code_table;
  return choose(isa, code_plain::code_table, code_avx2::code_table, code_avx512::code_table);
}

std::vector<const CodeKernels*> every_code_kernels() {
  std::vector<const CodeKernels*> result = {&code_plain::code_table};
  if (is_supported(Isa::Avx2)) result.push_back(&code_avx2::code_table);
  if (is_supported(Isa::Avx512)) result.push_back(&code_avx512::code_table);
  if (has_vnni()) {
    result.push_back(&code_avx512vnni::code_table);
    result.push_back(&code_tiles::code_table);
  }
  if (has_code_tiles()) result.push_back(&code_amx::code_table);
  return result;
}

}  // namespace lathe::engine
