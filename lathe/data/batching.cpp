#include "lathe/data/batching.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "lathe/core/error.h"
#include "lathe/data/counter_random.h"

namespace lathe::data {
namespace {

// Streams of the seed, so that shuffling batches does not repeat the shuffling of examples.
constexpr std::uint64_t kExampleStream = 1;
constexpr std::uint64_t kBatchStream = 2;

void sort_windows(std::span<const std::int64_t> lengths, std::int64_t window,
                  std::vector<std::int64_t>& order) {
  const auto length_of = [&](std::int64_t example) {
    return lengths[static_cast<std::size_t>(example)];
  };
  const auto size = static_cast<std::int64_t>(order.size());
  for (std::int64_t begin = 0; begin < size; begin += std::min(window, size - begin))
    std::stable_sort(order.begin() + begin, order.begin() + begin + std::min(window, size - begin),
                     [&](std::int64_t a, std::int64_t b) { return length_of(a) < length_of(b); });
}

// As many examples as there are, the classes in turn. An example that is rare comes several times.
std::vector<std::int64_t> balanced_order(const std::vector<std::int64_t>& shuffled,
                                         const BatchOptions& options) {
  check(options.balanced.size() == shuffled.size(), "a class for each example");
  std::map<std::int32_t, std::vector<std::int64_t>> classes;
  for (const std::int64_t example : shuffled)
    classes[options.balanced[static_cast<std::size_t>(example)]].push_back(example);
  std::vector<std::int64_t> order;
  for (std::size_t round = 0; order.size() < shuffled.size(); ++round)
    for (const auto& [label, members] : classes)
      if (order.size() < shuffled.size()) order.push_back(members[round % members.size()]);
  return order;
}

void cut(std::span<const std::int64_t> lengths, const BatchOptions& options, BatchPlan& plan) {
  std::int64_t num_examples = 0;
  std::int64_t num_tokens = 0;
  for (std::size_t i = 0; i < plan.order.size(); ++i) {
    const std::int64_t length = lengths[static_cast<std::size_t>(plan.order[i])];
    const bool full = (options.max_examples > 0 && num_examples == options.max_examples) ||
                      (options.max_tokens > 0 && num_tokens + length > options.max_tokens);
    if (full && num_examples > 0) {
      plan.starts.push_back(static_cast<std::int64_t>(i));
      num_examples = 0;
      num_tokens = 0;
    }
    ++num_examples;
    num_tokens += length;
  }
  const bool drop =
      options.drop_last && options.max_tokens == 0 && num_examples < options.max_examples;
  if (drop) plan.order.resize(static_cast<std::size_t>(plan.starts.back()));
  if (num_examples > 0 && !drop)
    plan.starts.push_back(static_cast<std::int64_t>(plan.order.size()));
}

// Batches sorted by length come short before long within a window: training must not see that.
BatchPlan with_shuffled_batches(const BatchPlan& plan, const BatchOptions& options) {
  std::vector<std::int64_t> batches(static_cast<std::size_t>(plan.num_batches()));
  std::iota(batches.begin(), batches.end(), std::int64_t{0});
  CounterRandom(options.seed, kBatchStream, static_cast<std::uint64_t>(options.epoch))
      .shuffle(std::span(batches));
  BatchPlan shuffled;
  for (const std::int64_t batch : batches) {
    const auto examples = plan.examples(batch);
    shuffled.order.insert(shuffled.order.end(), examples.begin(), examples.end());
    shuffled.starts.push_back(static_cast<std::int64_t>(shuffled.order.size()));
  }
  return shuffled;
}

}  // namespace

std::span<const std::int64_t> BatchPlan::examples(std::int64_t batch) const {
  check(batch >= 0 && batch < num_batches(), "a batch of the plan");
  const auto begin = static_cast<std::size_t>(starts[static_cast<std::size_t>(batch)]);
  const auto end = static_cast<std::size_t>(starts[static_cast<std::size_t>(batch) + 1]);
  return std::span(order).subspan(begin, end - begin);
}

BatchPlan plan_batches(std::span<const std::int64_t> lengths, const BatchOptions& options) {
  if (options.max_examples < 0 || options.max_tokens < 0 || options.sort_window < 0)
    fail("a batch of {} examples and {} tokens, sorted {} at a time: expected no negative number",
         options.max_examples, options.max_tokens, options.sort_window);
  if (options.max_examples == 0 && options.max_tokens == 0)
    fail("a batch needs a largest number of examples or of tokens");
  BatchPlan plan;
  plan.order.resize(lengths.size());
  std::iota(plan.order.begin(), plan.order.end(), std::int64_t{0});
  const bool shuffled = options.order == BatchOrder::Shuffled;
  if (shuffled)
    CounterRandom(options.seed, kExampleStream, static_cast<std::uint64_t>(options.epoch))
        .shuffle(std::span(plan.order));
  if (shuffled && !options.balanced.empty()) plan.order = balanced_order(plan.order, options);
  if (options.sort_window > 0) sort_windows(lengths, options.sort_window, plan.order);
  cut(lengths, options, plan);
  if (shuffled && options.sort_window > 0) return with_shuffled_batches(plan, options);
  return plan;
}

Batch make_batch(const TokenizedDataset& dataset, std::span<const std::int64_t> examples) {
  Batch batch;
  std::int64_t num_ids = 0;
  for (const std::int64_t example : examples) {
    check(example >= 0 && example < dataset.size(), "an example of the dataset");
    num_ids += dataset.length(example);
  }
  if (num_ids > std::numeric_limits<std::int32_t>::max())
    fail("a batch of {} examples has {} tokens, more than {}", examples.size(), num_ids,
         std::numeric_limits<std::int32_t>::max());
  batch.ids.reserve(static_cast<std::size_t>(num_ids));
  for (const std::int64_t example : examples) {
    const auto ids = dataset.example(example);
    batch.ids.insert(batch.ids.end(), ids.begin(), ids.end());
    if (!dataset.token_labels.empty()) {
      const auto first =
          dataset.token_labels.begin() + dataset.offsets[static_cast<std::size_t>(example)];
      batch.token_labels.insert(batch.token_labels.end(), first,
                                first + static_cast<std::ptrdiff_t>(ids.size()));
    }
    batch.offsets.push_back(static_cast<std::int32_t>(batch.ids.size()));
    batch.labels.push_back(dataset.labels[static_cast<std::size_t>(example)]);
    if (!dataset.first_lengths.empty())
      batch.first_lengths.push_back(dataset.first_lengths[static_cast<std::size_t>(example)]);
    batch.example_indices.push_back(example);
  }
  return batch;
}

std::vector<std::int32_t> padded_labels(const Batch& batch, std::int64_t length) {
  std::vector<std::int32_t> labels(static_cast<std::size_t>(batch.num_sequences() * length),
                                   kIgnoredLabel);
  for (std::size_t row = 0; row + 1 < batch.offsets.size(); ++row)
    std::copy(batch.token_labels.begin() + batch.offsets[row],
              batch.token_labels.begin() + batch.offsets[row + 1],
              labels.begin() + static_cast<std::ptrdiff_t>(row) * length);
  return labels;
}

PaddedBatch to_padded(const Batch& batch, std::int32_t padding_id, std::int64_t length) {
  PaddedBatch padded;
  padded.num_rows = batch.num_sequences();
  padded.length = length;
  for (std::size_t row = 0; row + 1 < batch.offsets.size(); ++row)
    padded.length =
        std::max<std::int64_t>(padded.length, batch.offsets[row + 1] - batch.offsets[row]);
  padded.ids.assign(static_cast<std::size_t>(padded.num_rows * padded.length), padding_id);
  padded.mask.assign(padded.ids.size(), 0);
  for (std::size_t row = 0; row + 1 < batch.offsets.size(); ++row) {
    const auto at = static_cast<std::ptrdiff_t>(row) * padded.length;
    std::copy(batch.ids.begin() + batch.offsets[row], batch.ids.begin() + batch.offsets[row + 1],
              padded.ids.begin() + at);
    std::fill_n(padded.mask.begin() + at, batch.offsets[row + 1] - batch.offsets[row], 1);
  }
  return padded;
}

}  // namespace lathe::data
