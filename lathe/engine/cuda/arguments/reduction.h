#pragma once

#include "lathe/engine/cuda/arguments/elementwise.h"

// Sums, means and maxima.
namespace lathe::engine::cuda {

/// Rows of a sum that one block of threads adds up; follows from the capacity alone.
inline constexpr std::int64_t rows_of_chunk(std::int64_t capacity) {
  const std::int64_t rows = (capacity + 127) / 128;
  return rows < 32 ? 32 : rows;
}
inline constexpr std::int64_t num_row_chunks(std::int64_t capacity) {
  const std::int64_t rows = rows_of_chunk(capacity);
  return capacity == 0 ? 1 : (capacity + rows - 1) / rows;
}

enum class Reduction : std::int32_t { Sum, Mean, Max };
/// Each result reduces the elements that the reduced axes reach from its own first element.
struct ReduceArgs {
  Reduction reduction = Reduction::Sum;
  const float* x = nullptr;
  float* y = nullptr;
  std::int32_t rank = 0, reduced_rank = 0;
  std::int64_t dims[kMostAxes] = {}, reduced_dims[kMostAxes] = {};
  Walk walk, reduced_walk;
  Extent count;       ///< results
  Extent outer_axis;  ///< the first reduced axis
};

/// dx = dy at the largest of the elements that share it, in equal parts.
struct MaxGradientArgs {
  ReduceArgs reduce;  ///< of x; y is unused
  const float* dy = nullptr;
  float* dx = nullptr;
  Extent elements;
};

/// y[r] = the index of the largest of x[r, n], of several equal ones the first.
struct ArgmaxArgs {
  const float* x = nullptr;
  std::int32_t* y = nullptr;
  std::int64_t n = 0;
  Extent rows;
};

/// Sums over rows: y[c] = sum of x[r, c]. `scratch` holds num_row_chunks(capacity) * n doubles.
struct SumRowsArgs {
  const float* x = nullptr;
  float* y = nullptr;
  double* scratch = nullptr;
  std::int64_t n = 0;
  Extent rows;
};

}  // namespace lathe::engine::cuda
