#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lathe/engine/cpu/kernel_table.h"

/// Where the zeros of a weight are, and the weight without them.
namespace lathe::engine {

/// What of a matrix [n, k] is left, counted in three ways.
struct KeptWeights {
  std::int64_t n = 0, k = 0;
  std::int64_t elements = 0;               ///< that are not zero
  std::int64_t groups = 0;                 ///< columns of kSparseGroup rows that are not all zero
  std::vector<std::int32_t> rows = {};     ///< that are not all zero
  std::vector<std::int32_t> columns = {};  ///< that are not all zero

  /// The share of zeros.
  double sparsity() const;
};
KeptWeights count_kept(std::span<const float> weight, std::int64_t n, std::int64_t k);

/// What an entry's place can be counted by.
inline constexpr std::int64_t kMostSparseElements = (std::int64_t{1} << 31) - 1;

/// A matrix in the form that `sparse_gemm` reads.
class SparseWeights {
 public:
  SparseWeights() = default;
  /// `group` is 1 or kSparseGroup.
  SparseWeights(std::span<const float> weight, std::int64_t n, std::int64_t k, int group);

  std::int64_t bytes() const {
    return static_cast<std::int64_t>(starts_.size() * sizeof(std::int32_t) + groups_.size() +
                                     columns_.size() * sizeof(std::uint16_t) +
                                     values_.size() * sizeof(float));
  }
  SparseMatrix matrix() const {
    return {n_, k_, group_, starts_.data(), groups_.data(), columns_.data(), values_.data()};
  }

 private:
  // The entries of a block of rows in a chunk of columns.
  void add_chunk(std::span<const float> weight, std::int64_t block, std::int64_t chunk);

  std::int64_t n_ = 0, k_ = 0;
  int group_ = 1;
  std::vector<std::int32_t> starts_;
  std::vector<std::uint8_t> groups_;
  std::vector<std::uint16_t> columns_;
  std::vector<float> values_;
};

}  // namespace lathe::engine
