#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "lathe/core/op.h"

/// Rows whose smallest magnitudes are taken out: what prune_values and its gradient share.
namespace lathe::ops {

/// The attribute that says how much of a row goes.
AttributeSpec sparsity_attribute();
/// Fails unless operand `x` has rows of floats and the sparsity is 0 or more and below 1.
void check_pruned_rows(std::string_view op, const OpCall& call, std::size_t x);
/// The definition: rows of `from` where those of `x` are kept.
void run_pruned_rows(const KernelCall& call, const Tensor& x, const Tensor& from);

/// How many of a row's values a sparsity takes out.
inline std::int64_t num_pruned(double sparsity, std::int64_t columns) {
  return std::llround(sparsity * static_cast<double>(columns));
}

/// Writes `from` where x is kept and 0 elsewhere: of a row's magnitudes the `count` smallest go,
/// ties by index. What is no number stays. `magnitudes` is room for a copy.
template <typename T>
void prune_row(const T* x, const T* from, std::int64_t columns, std::int64_t count, T* y,
               std::vector<T>& magnitudes) {
  const auto magnitude = [&](std::int64_t i) {
    return std::isnan(x[i]) ? std::numeric_limits<T>::infinity() : std::fabs(x[i]);
  };
  if (count <= 0) {
    std::copy(from, from + columns, y);
    return;
  }
  magnitudes.resize(static_cast<std::size_t>(columns));
  for (std::int64_t i = 0; i < columns; ++i) magnitudes[static_cast<std::size_t>(i)] = magnitude(i);
  std::nth_element(magnitudes.begin(), magnitudes.begin() + (count - 1), magnitudes.end());
  const T last = magnitudes[static_cast<std::size_t>(count - 1)];
  // Of those as large as the last one that goes, as many go as are left after the smaller ones.
  for (std::int64_t i = 0; i < columns; ++i)
    if (magnitude(i) < last) --count;
  for (std::int64_t i = 0; i < columns; ++i) {
    const T value = magnitude(i);
    const bool goes = value < last || (value == last && count-- > 0);
    y[i] = goes ? T{0} : from[i];
  }
}

}  // namespace lathe::ops
