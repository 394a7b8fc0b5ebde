#include "lathe/numerics/kernels/kernels.h"

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
  return choose(isa, plain::table, avx2::table, avx512::table);
}

bool should_stream(std::int64_t bytes) {
  // Larger than any core's share of a cache, far larger than the executor's tiles.
  return bytes >= std::int64_t{16} << 20;
}

}  // namespace lathe::numerics
