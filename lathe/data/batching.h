#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lathe/data/tokenized_dataset.h"

namespace lathe::data {

/// A packed batch: sequence s is ids[offsets[s]] to ids[offsets[s + 1]], without padding.
struct Batch {
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> offsets = {0};
  std::vector<std::int32_t> labels;
  /// Where each sequence stands in the dataset, to put results back in order.
  std::vector<std::int64_t> example_indices;
  /// Of pairs: how many ids of each sequence belong to its first text; empty where there are none.
  std::vector<std::int32_t> first_lengths = {};
  /// Of words with labels: that of each id, `kIgnoredLabel` where it is not a word's first.
  std::vector<std::int32_t> token_labels = {};
  bool operator==(const Batch&) const = default;

  std::int32_t num_sequences() const { return static_cast<std::int32_t>(labels.size()); }
  std::int32_t num_tokens() const { return static_cast<std::int32_t>(ids.size()); }
};

/// The same batch as a row-major array [num_rows, length] with a mask: 1 for a token, 0 for
/// padding.
struct PaddedBatch {
  std::int64_t num_rows = 0;
  std::int64_t length = 0;
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> mask;
  bool operator==(const PaddedBatch&) const = default;
};

enum class BatchOrder : std::uint8_t { Sequential, Shuffled };

struct BatchOptions {
  /// At most so many examples in a batch; 0 means any number.
  std::int64_t max_examples = 32;
  /// At most so many tokens in a batch; 0 means any number. A longer example is a batch by itself.
  std::int64_t max_tokens = 0;
  BatchOrder order = BatchOrder::Sequential;
  /// With Shuffled, the order is a function of these two and the number of examples.
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
  /// The class of each example, where as many of each are to be drawn: the classes take turns, each
  /// through its own examples in random order, again and again. With Shuffled alone.
  std::span<const std::int32_t> balanced = {};
  /// Sorts so many examples at a time by length, so that a batch holds similar lengths; 0 means
  /// none. With Shuffled the batches are then put into a random order again.
  std::int64_t sort_window = 0;
  /// Leaves out a last batch that is not full (with max_examples alone).
  bool drop_last = false;
};

/// Which examples make up each batch of an epoch. To resume an epoch, make its plan again and go on
/// from the batch that was next.
struct BatchPlan {
  std::vector<std::int64_t> order;
  /// Batch b is order[starts[b]] to order[starts[b + 1]].
  std::vector<std::int64_t> starts = {0};
  bool operator==(const BatchPlan&) const = default;

  std::int64_t num_batches() const { return static_cast<std::int64_t>(starts.size()) - 1; }
  std::span<const std::int64_t> examples(std::int64_t batch) const;
};

/// Plans an epoch over examples of these lengths.
BatchPlan plan_batches(std::span<const std::int64_t> lengths, const BatchOptions& options);

/// Gathers examples into a batch.
Batch make_batch(const TokenizedDataset& dataset, std::span<const std::int64_t> examples);

/// The labels of a batch's tokens as a row-major array [num_rows, length], padding left out of any
/// loss.
std::vector<std::int32_t> padded_labels(const Batch& batch, std::int64_t length);

/// Pads every sequence at its end to the longest of the batch, or to `length` when that is more.
PaddedBatch to_padded(const Batch& batch, std::int32_t padding_id, std::int64_t length = 0);

}  // namespace lathe::data
