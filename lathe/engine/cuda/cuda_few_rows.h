#pragma once

#include <optional>

#include "lathe/engine/cuda/arguments/few_rows.h"

namespace lathe::engine {

/// What one launch can do after others of its kind, of few rows and in bfloat16; nullopt where that
/// is not made for it.
std::optional<cuda::FewRowsStage> few_rows_stage(const cuda::Product& product);
std::optional<cuda::FewRowsStage> few_rows_stage(const cuda::RowChainArgs& chain);

}  // namespace lathe::engine
