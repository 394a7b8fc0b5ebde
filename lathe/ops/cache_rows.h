#pragma once

#include <vector>

#include "lathe/core/tensor.h"

namespace lathe::ops {

/// How a cache holds the keys or values of a token, `heads` heads of `d` features: by its dtype as
/// floats, as bfloat16 numbers, or (I8) as whole numbers of 8 bits with a scale for every head of
/// every token, rounded as `int:8,dynamic` rounds. Such a row is the numbers of all heads, filled
/// up to whole fours, and behind them the scales, four bytes each.
struct CacheLayout {
  DType dtype = DType::F32;
  std::int64_t heads = 1, d = 0;

  bool has_scales() const { return dtype == DType::I8; }
  /// Elements of a row.
  std::int64_t width() const { return has_scales() ? first_scale() + 4 * heads : heads * d; }
  /// The byte where the scales of a row begin.
  std::int64_t first_scale() const { return (heads * d + 3) / 4 * 4; }
  std::int64_t row_bytes() const { return width() * size_of(dtype); }
};

/// Whether keys of such a dtype can be held so.
bool can_hold(DType cache, DType keys);

/// What all rows of a cache are worth, [rows, heads * d].
std::vector<double> read_cache(const Tensor& cache, const CacheLayout& layout);
/// Puts a token into a row, rounded.
void write_cache_row(Tensor& cache, const CacheLayout& layout, std::int64_t row,
                     const double* features);

}  // namespace lathe::ops
