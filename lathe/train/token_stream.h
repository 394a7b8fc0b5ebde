#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "lathe/data/batching.h"
#include "lathe/data/dataset.h"
#include "lathe/data/tokenizer.h"

namespace lathe::train {

/// The tokens of a dataset's examples, made by a thread of its own while training is under way.
///
/// Training starts as soon as its first batch is tokenized instead of waiting for the last text;
/// the tokens are kept for later epochs. What an example's tokens are does not depend on the
/// thread.
class TokenStream {
 public:
  /// Starts to tokenize in the given order, which names every example once. The dataset and the
  /// tokenizer must outlive the stream.
  TokenStream(const data::Dataset& dataset, const data::Tokenizer& tokenizer,
              std::int64_t max_length, data::Truncation truncation,
              std::vector<std::int64_t> order);
  ~TokenStream();
  TokenStream(const TokenStream&) = delete;
  TokenStream& operator=(const TokenStream&) = delete;

  std::int64_t size() const { return static_cast<std::int64_t>(order_.size()); }
  /// Gathers examples into a batch; waits for those that are not tokenized yet.
  data::Batch batch(std::span<const std::int64_t> examples);
  /// The number of tokens of every example; waits for all of them.
  std::vector<std::int64_t> lengths();

 private:
  void tokenize();
  /// Waits until so many examples of the order are done.
  void wait_for(std::int64_t count);

  const data::Dataset& dataset_;
  const data::Tokenizer& tokenizer_;
  std::int64_t max_length_;
  data::Truncation truncation_;
  std::vector<std::int64_t> order_;
  std::vector<std::int64_t> rank_;  ///< where an example stands in the order
  std::vector<std::vector<std::int32_t>> ids_;
  std::vector<std::int32_t> first_lengths_;              ///< of pairs
  std::vector<std::vector<std::int32_t>> token_labels_;  ///< of words

  std::mutex mutex_;
  std::condition_variable done_changed_;
  std::atomic<std::int64_t> num_done_{0};
  std::exception_ptr error_;
  std::atomic<bool> is_stopping_{false};
  std::thread worker_;
};

}  // namespace lathe::train
