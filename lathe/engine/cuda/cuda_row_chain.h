#pragma once

#include <optional>
#include <vector>

#include "lathe/engine/cuda/kernel_table.h"

namespace lathe::engine {

/// The chain (arguments/row_chain.h) that a row program is, where it is one. Instructions as a
/// program writes them, each with a register of its own.
std::optional<cuda::RowChainArgs> find_row_chain(
    std::int64_t width, cuda::Extent rows, const std::vector<cuda::RowInstruction>& instructions,
    const std::vector<const float*>& vectors, const std::vector<cuda::QuantizeArgs>& formats,
    const std::vector<cuda::LearnedStepArgs>& learned_steps);

}  // namespace lathe::engine
