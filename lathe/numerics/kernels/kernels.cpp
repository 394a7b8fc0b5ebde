#include "lathe/numerics/kernels/kernels.h"

#include "lathe/core/error.h"

namespace lathe::numerics {

namespace avx512 {
extern const Kernels table;
}
namespace avx2 {
extern const Kernels table;
}
namespace plain {
extern const Kernels table;
}

const Kernels& kernels(Isa isa) {
  check(is_supported(isa), "the instruction set to be one this processor has");
  switch (isa) {
    case Isa::Plain:
      return plain::table;
    case Isa::Avx2:
      return avx2::table;
    case Isa::Avx512:
      return avx512::table;
  }
  check(false, "isa to be an enumerator");
  return plain::table;
}

bool should_stream(std::int64_t bytes) {
  // Larger than any core's share of a cache, far larger than the executor's tiles.
  return bytes >= std::int64_t{16} << 20;
}

}  // namespace lathe::numerics
