#pragma once

#include "lathe/engine/cuda/kernel_table.h"

// Products and norms of a few rows, one after another in one launch.
namespace lathe::engine::cuda {

/// The sum of the sources through a norm, row by row.
struct FewRowsNorm {
  std::int32_t num_sources = 0;
  struct Source {
    const void* x = nullptr;
    bool is_half = false;
  } sources[kMostRowSources];
  const float* gamma = nullptr;
  const float* beta = nullptr;  ///< null for rms
  float eps = 0;
  bool is_rms = false;
  RowResult sum, result;
  std::int64_t n = 0;
  Extent rows;
};

struct FewRowsStage {
  bool is_product = true;
  Product product;  ///< else:
  FewRowsNorm norm;
};
inline constexpr int kMostStages = 16;
/// Rows of a stage, columns of a norm, and what the depth of a product is a multiple of.
inline constexpr std::int64_t kMostFewRows = 64, kMostFewColumns = 512, kFewDepth = 128;

}  // namespace lathe::engine::cuda
