// Chains with a map.

#include "lathe/engine/cuda/kernels/row_chain.cuh"
#include "lathe/engine/cuda/kernels/row_chains.cuh"

namespace lathe::engine::cuda::row_chains {

void launch_map(const RowChainArgs& args, bool is_general, std::int64_t blocks,
                cudaStream_t stream) {
  launch_pieces<Stage::Map>(args, is_general, blocks, stream);
}

}  // namespace lathe::engine::cuda::row_chains
