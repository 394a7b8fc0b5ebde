#pragma once

// The kernels of chains, a file for each stage.

#include "lathe/engine/cuda/kernels/kernels.cuh"

namespace lathe::engine::cuda::row_chains {

/// `blocks`: as many as sums are left in parts; 0: there are none.
void launch_none(const RowChainArgs&, bool is_general, std::int64_t blocks, cudaStream_t);
void launch_normalize(const RowChainArgs&, bool is_general, std::int64_t blocks, cudaStream_t);
void launch_normalize_gradient(const RowChainArgs&, bool is_general, std::int64_t blocks,
                               cudaStream_t);
void launch_map(const RowChainArgs&, bool is_general, std::int64_t blocks, cudaStream_t);
void launch_map_gradient(const RowChainArgs&, bool is_general, std::int64_t blocks, cudaStream_t);

}  // namespace lathe::engine::cuda::row_chains
