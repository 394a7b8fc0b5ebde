#pragma once

#include "lathe/engine/cuda/cuda_plan.h"

namespace lathe::engine {

/// Finds launches that follow each other and can be one where they have a single row, as those of a
/// decoder have for every token: a norm, the products that read it and what multiplies two of them;
/// rotations and the attention to caches behind them. Whether they have is known when they run.
std::vector<CudaSingleRow> find_single_rows(const CudaPlan& plan);

}  // namespace lathe::engine
