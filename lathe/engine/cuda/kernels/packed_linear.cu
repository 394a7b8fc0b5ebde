// Products of few rows with a packed weight, which is read once and never written unpacked.

#include "lathe/engine/cuda/kernels/kernels.cuh"
#include "lathe/engine/cuda/kernels/packed_linear.cuh"

namespace lathe::engine::cuda {

void packed_linear(const PackedLinearArgs& args, Stream* stream) {
  if (args.rows.capacity == 0 || args.n == 0) return;
  if (args.encodes) return packed_integers(args, stream);
  packed_tiles(args, stream);
}

}  // namespace lathe::engine::cuda
