#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lathe/core/interrupt.h"
#include "lathe/core/thread_pool.h"
#include "lathe/data/dataset.h"
#include "lathe/data/tokenizer.h"

namespace lathe::data {

/// A dataset as token ids, all in one run: example i is ids[offsets[i]] to ids[offsets[i + 1]].
struct TokenizedDataset {
  std::vector<std::int32_t> ids;
  std::vector<std::int64_t> offsets = {0};
  std::vector<std::int32_t> labels;
  /// Of pairs: how many ids of each example belong to its first text; empty where there are none.
  std::vector<std::int32_t> first_lengths = {};
  /// Of words with labels: that of each id, `kIgnoredLabel` where it is not a word's first.
  std::vector<std::int32_t> token_labels = {};
  bool operator==(const TokenizedDataset&) const = default;

  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }
  std::int64_t length(std::int64_t example) const {
    const auto index = static_cast<std::size_t>(example);
    return offsets[index + 1] - offsets[index];
  }
  std::span<const std::int32_t> example(std::int64_t example) const {
    return std::span(ids).subspan(
        static_cast<std::size_t>(offsets[static_cast<std::size_t>(example)]),
        static_cast<std::size_t>(length(example)));
  }
  std::vector<std::int64_t> lengths() const;
};

/// What encoding an example appends to.
struct EncodedTokens {
  std::vector<std::int32_t>& ids;
  /// Of words with labels, one for each id: that of the word it begins, else `kIgnoredLabel`.
  std::vector<std::int32_t>* labels = nullptr;
};

/// Appends the ids of an example, a text or a pair of them, or words; gives how many belong to its
/// first text, 0 where there is no second.
std::int32_t encode_example(const Dataset& dataset, std::size_t example, const Tokenizer& tokenizer,
                            const EncodedTokens& tokens, std::int64_t max_length,
                            Truncation truncation);

/// Tokenizes every example, in order, on all threads of the pool. `max_length` counts the
/// special tokens too. The result does not depend on the number of threads.
TokenizedDataset tokenize(const Dataset& dataset, const Tokenizer& tokenizer,
                          std::int64_t max_length, Truncation truncation, ThreadPool& pool,
                          const ShouldStop& should_stop = {});

}  // namespace lathe::data
