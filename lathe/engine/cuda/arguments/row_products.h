#pragma once

#include <cstdint>

#include "lathe/engine/cuda/arguments/elementwise.h"

// Products of a single row with several weights: what a decoder does for each token.
namespace lathe::engine::cuda {

/// How a weight lies: a row of it for each output.
enum class RowCode : std::int32_t { Float, Int8, Int4 };

/// y[n] = map(x . weight^T + bias) + residual.
struct RowProduct {
  const void* weight = nullptr;
  std::int64_t row_bytes = 0;
  const void* scales = nullptr;    ///< of codes
  std::int32_t scales_of_row = 1;  ///< of an output
  const float* bias = nullptr;
  const float* residual = nullptr;
  Map map = Map::Identity;
  std::int64_t n = 0;
  float* y = nullptr;
};

/// The row: the sum of the sources, through a norm or not. `sum` and `normalized` are where others
/// read them, null where nobody does.
struct RowInput {
  const float* sources[2] = {};  ///< the second may be null
  bool has_norm = false, is_rms = false;
  const float* gamma = nullptr;
  const float* beta = nullptr;
  float eps = 0;
  float* sum = nullptr;
  float* normalized = nullptr;
};

inline constexpr int kMostRowProducts = 4;
struct RowProductsArgs {
  RowInput input;
  RowCode code = RowCode::Float;
  bool are_exponents = false;    ///< scales are bytes, as SharedExponent has them; else floats
  std::int32_t group_bits = 31;  ///< inputs of a scale: 2 to this; 31 for a row with one scale
  float step = 1;                ///< what the codes count
  std::int32_t count = 0;
  RowProduct products[kMostRowProducts];
  /// The results of two products multiplied, which themselves are not left then; null: they are.
  float* gated = nullptr;
  std::int64_t k = 0;
  Precision precision = Precision::Float32;  ///< of codes' products: of the row and the result
  /// What is launched before this does not write the weights.
  bool may_begin_early = true;
  Extent rows;  ///< of capacity 1
};

}  // namespace lathe::engine::cuda
