#include "lathe/train/token_stream.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "lathe/core/error.h"

namespace lathe::train {
namespace {

// Few enough that the first batch is there at once, enough that waking the reader costs nothing.
constexpr std::int64_t kExamplesPerNotice = 8;

// Steps of training come first: texts are needed epochs later, except when training waits for one,
// and then the processor is free.
constexpr int kNiceness = 5;

}  // namespace

TokenStream::TokenStream(const data::Dataset& dataset, const data::Tokenizer& tokenizer,
                         std::int64_t max_length, data::Truncation truncation,
                         std::vector<std::int64_t> order)
    : dataset_(dataset),
      tokenizer_(tokenizer),
      max_length_(max_length),
      truncation_(truncation),
      order_(std::move(order)),
      rank_(order_.size(), -1),
      ids_(order_.size()),
      first_lengths_(dataset.has_pairs ? order_.size() : 0),
      token_labels_(order_.size()) {
  if (max_length < 3)
    fail("sequences of {} tokens: expected at least 3: [CLS], a token, [SEP]", max_length);
  check(order_.size() == dataset.examples.size(), "an order of all examples");
  for (std::size_t rank = 0; rank < order_.size(); ++rank) {
    const auto example = static_cast<std::size_t>(order_[rank]);
    check(example < rank_.size() && rank_[example] < 0, "an order that names each example once");
    rank_[example] = static_cast<std::int64_t>(rank);
  }
  worker_ = std::thread([this] { tokenize(); });
}

TokenStream::~TokenStream() {
  is_stopping_ = true;
  worker_.join();
}

void TokenStream::tokenize() {
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNiceness);
  try {
    std::int64_t done = 0;
    while (done < size() && !is_stopping_) {
      const std::int64_t end = std::min(size(), done + kExamplesPerNotice);
      for (; done < end; ++done) {
        const auto example = static_cast<std::size_t>(order_[static_cast<std::size_t>(done)]);
        const std::int32_t first = data::encode_example(dataset_, example, tokenizer_,
                                                        {ids_[example], &token_labels_[example]},
                                                        max_length_, truncation_);
        if (dataset_.has_pairs) first_lengths_[example] = first;
        ids_[example].shrink_to_fit();
      }
      const std::lock_guard lock(mutex_);
      num_done_ = done;
      done_changed_.notify_all();
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    error_ = std::current_exception();
    done_changed_.notify_all();
  }
}

void TokenStream::wait_for(std::int64_t count) {
  if (num_done_ >= count) return;
  std::unique_lock lock(mutex_);
  done_changed_.wait(lock, [&] { return num_done_ >= count || error_; });
  if (num_done_ < count) std::rethrow_exception(error_);
}

data::Batch TokenStream::batch(std::span<const std::int64_t> examples) {
  std::int64_t last = 0;
  for (const std::int64_t example : examples) {
    check(example >= 0 && example < size(), "an example of the dataset");
    last = std::max(last, rank_[static_cast<std::size_t>(example)] + 1);
  }
  wait_for(last);
  std::size_t num_ids = 0;
  for (const std::int64_t example : examples)
    num_ids += ids_[static_cast<std::size_t>(example)].size();
  if (num_ids > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
    fail("a batch of {} examples has {} tokens, more than {}", examples.size(), num_ids,
         std::numeric_limits<std::int32_t>::max());
  data::Batch result;
  result.ids.reserve(num_ids);
  for (const std::int64_t example : examples) {
    const auto index = static_cast<std::size_t>(example);
    result.ids.insert(result.ids.end(), ids_[index].begin(), ids_[index].end());
    result.token_labels.insert(result.token_labels.end(), token_labels_[index].begin(),
                               token_labels_[index].end());
    result.offsets.push_back(static_cast<std::int32_t>(result.ids.size()));
    result.labels.push_back(dataset_.examples[index].label);
    if (dataset_.has_pairs) result.first_lengths.push_back(first_lengths_[index]);
    result.example_indices.push_back(example);
  }
  return result;
}

std::vector<std::int64_t> TokenStream::lengths() {
  wait_for(size());
  std::vector<std::int64_t> all;
  all.reserve(ids_.size());
  for (const std::vector<std::int32_t>& ids : ids_)
    all.push_back(static_cast<std::int64_t>(ids.size()));
  return all;
}

}  // namespace lathe::train
