#include "lathe/engine/cpu/sparse_weights.h"

#include <algorithm>

#include "lathe/core/error.h"

namespace lathe::engine {
double KeptWeights::sparsity() const {
  return n * k == 0 ? 0.0 : 1 - static_cast<double>(elements) / static_cast<double>(n * k);
}

KeptWeights count_kept(std::span<const float> weight, std::int64_t n, std::int64_t k) {
  KeptWeights kept{.n = n, .k = k};
  std::vector<std::uint8_t> is_column(static_cast<std::size_t>(k)), is_group(is_column);
  const float* row = weight.data();
  for (std::int64_t j = 0; j < n; ++j, row += k) {
    std::int64_t count = 0;
    for (std::size_t p = 0; p < is_column.size(); ++p) {
      const std::uint8_t is_kept = row[p] != 0.0f ? 1 : 0;
      count += is_kept;
      is_group[p] |= is_kept;
    }
    kept.elements += count;
    if (count > 0) kept.rows.push_back(static_cast<std::int32_t>(j));
    if ((j + 1) % kSparseGroup != 0 && j + 1 < n) continue;
    for (std::size_t p = 0; p < is_column.size(); ++p) {
      kept.groups += is_group[p];
      is_column[p] |= is_group[p];
      is_group[p] = 0;
    }
  }
  for (std::size_t p = 0; p < is_column.size(); ++p)
    if (is_column[p] != 0) kept.columns.push_back(static_cast<std::int32_t>(p));
  return kept;
}

SparseWeights::SparseWeights(std::span<const float> weight, std::int64_t n, std::int64_t k,
                             int group)
    : n_(n), k_(k), group_(group) {
  check(std::ssize(weight) == n * k && n * k <= kMostSparseElements,
        "a matrix whose entries can be counted by 32 bits");
  static_assert(kSparseBlock <= 256 && kSparseChunk <= 65536, "for `groups` and `columns`");
  starts_.push_back(0);
  for (std::int64_t block = 0; block < n; block += kSparseBlock)
    for (std::int64_t chunk = 0; chunk < k; chunk += kSparseChunk) add_chunk(weight, block, chunk);
}

void SparseWeights::add_chunk(std::span<const float> weight, std::int64_t block,
                              std::int64_t chunk) {
  const std::int64_t rows = std::min(kSparseBlock, n_ - block);
  const std::int64_t columns = std::min(kSparseChunk, k_ - chunk);
  const auto at = [&](std::int64_t row, std::int64_t column) {
    return row < rows ? weight[static_cast<std::size_t>((block + row) * k_ + chunk + column)]
                      : 0.0f;
  };
  struct Entries {
    std::uint8_t group;
    std::vector<std::uint16_t> columns = {};
  };
  std::vector<Entries> groups;
  for (std::int64_t first = 0; first < rows; first += group_) {
    Entries entries{static_cast<std::uint8_t>(first / group_)};
    for (std::int64_t column = 0; column < columns; ++column) {
      bool is_kept = false;
      for (std::int64_t row = first; row < first + group_; ++row)
        is_kept = is_kept || at(row, column) != 0.0f;
      if (is_kept) entries.columns.push_back(static_cast<std::uint16_t>(column));
    }
    groups.push_back(std::move(entries));
  }
  std::stable_sort(groups.begin(), groups.end(), [](const Entries& a, const Entries& b) {
    return a.columns.size() < b.columns.size();
  });
  for (const Entries& entries : groups) {
    groups_.push_back(entries.group);
    for (const std::uint16_t column : entries.columns) {
      columns_.push_back(column);
      for (int row = 0; row < group_; ++row)
        values_.push_back(at(entries.group * group_ + row, column));
    }
    starts_.push_back(static_cast<std::int32_t>(columns_.size()));
  }
}

}  // namespace lathe::engine
