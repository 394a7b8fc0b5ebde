#include "lathe/train/evaluation.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "lathe/core/error.h"
#include "lathe/core/interrupt.h"
#include "lathe/data/batching.h"

namespace lathe::train {

Interval wilson_interval(std::int64_t correct, std::int64_t total) {
  if (total == 0) return {0, 1};
  constexpr double kZ = 1.959963984540054;  // 97.5 % quantile of the normal distribution
  const auto n = static_cast<double>(total);
  const double share = static_cast<double>(correct) / n;
  const double centre = share + kZ * kZ / (2 * n);
  const double half = kZ * std::sqrt(share * (1 - share) / n + kZ * kZ / (4 * n * n));
  const double scale = 1 + kZ * kZ / n;
  return {std::max(0.0, (centre - half) / scale), std::min(1.0, (centre + half) / scale)};
}

std::vector<double> softmax(std::span<const float> logits) {
  double most = -std::numeric_limits<double>::infinity();
  for (const float logit : logits) most = std::max(most, static_cast<double>(logit));
  std::vector<double> result;
  double sum = 0;
  for (const float logit : logits) {
    result.push_back(std::exp(static_cast<double>(logit) - most));
    sum += result.back();
  }
  for (double& value : result) value /= sum;
  return result;
}

namespace {

// log(sum exp) - logit, with the largest logit taken out so that nothing overflows.
double cross_entropy(std::span<const float> logits, std::size_t label) {
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - most);
  return std::log(sum) + most - static_cast<double>(logits[label]);
}

}  // namespace

Evaluation evaluate(Classifier& classifier, ExampleSource& source, std::int64_t num_labels,
                    const EvaluationOptions& options) {
  // Sorting everything by length groups equal lengths: padded batches waste nothing, and packed
  // ones have equal work in each sequence. The sums below do not care about the order.
  data::BatchOptions batching;
  batching.max_examples = options.batch_examples;
  batching.max_tokens = options.batch_examples > 0 ? 0 : options.batch_tokens;
  batching.sort_window = source.size();
  const std::vector<std::int64_t> lengths = source.lengths();
  const data::BatchPlan plan = data::plan_batches(lengths, batching);

  for (std::int64_t i = 0; i < source.size(); ++i) {
    const std::int32_t label = source.label(i);
    if (label < 0 || label >= num_labels)
      fail("example {} has label {}: expected 0 to {}", i + 1, label, num_labels - 1);
  }

  Evaluation result;
  const auto labels = static_cast<std::size_t>(num_labels);
  result.confusion.assign(labels, std::vector<std::int64_t>(labels));
  // Losses are added in the order of the examples, so that batches do not change the last bits.
  std::vector<double> losses(static_cast<std::size_t>(source.size()));
  std::int64_t correct = 0;
  for (std::int64_t index = 0; index < plan.num_batches(); ++index) {
    const ExampleBatch batch = source.evaluation_batch(plan.examples(index));
    const auto start = std::chrono::steady_clock::now();
    const Tensor logits = classifier.logits(batch.feed);
    result.forward_seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    check(logits.dim(1) == num_labels, "as many logits as labels");
    const std::span<const float> values = logits.data<float>();
    for (std::size_t row = 0; row < batch.examples.size(); ++row) {
      const std::span<const float> scores = values.subspan(row * labels, labels);
      const auto best =
          static_cast<std::size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
      const auto label = static_cast<std::size_t>(source.label(batch.examples[row]));
      losses[static_cast<std::size_t>(batch.examples[row])] = cross_entropy(scores, label);
      ++result.confusion[label][best];
      correct += best == label ? 1 : 0;
    }
    result.examples += static_cast<std::int64_t>(batch.examples.size());
    result.tokens += batch.tokens;
    if (options.progress && !options.progress(result.examples, result.tokens)) throw Interrupted();
  }
  for (const double loss : losses) result.loss += loss;
  result.loss /= static_cast<double>(std::max<std::int64_t>(1, source.size()));
  result.accuracy = static_cast<double>(correct) /
                    static_cast<double>(std::max<std::int64_t>(1, result.examples));
  const Interval interval = wilson_interval(correct, result.examples);
  result.accuracy_low = interval.low;
  result.accuracy_high = interval.high;
  return result;
}

}  // namespace lathe::train
