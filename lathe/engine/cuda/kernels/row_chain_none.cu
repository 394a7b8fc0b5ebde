// Chains without a stage: sums, dropout, formats.

#include "lathe/engine/cuda/kernels/row_chain.cuh"
#include "lathe/engine/cuda/kernels/row_chains.cuh"

namespace lathe::engine::cuda::row_chains {

void launch_none(const RowChainArgs& args, bool is_general, std::int64_t blocks,
                 cudaStream_t stream) {
  launch_pieces<Stage::None>(args, is_general, blocks, stream);
}

}  // namespace lathe::engine::cuda::row_chains
