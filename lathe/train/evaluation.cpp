#include "lathe/train/evaluation.h"

#include <algorithm>
#include <cmath>

#include "lathe/core/error.h"
#include "lathe/data/dataset.h"

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

namespace {

void check_labels(std::span<const std::int32_t> labels, std::int64_t num_labels) {
  if (num_labels < 2) fail("a model of {} label has no accuracy", num_labels);
  for (std::size_t i = 0; i < labels.size(); ++i)
    if (labels[i] == data::kNoLabel)
      fail("example {} has no class for its label, and so no accuracy", i + 1);
    else if (labels[i] < 0 || labels[i] >= num_labels)
      fail("example {} has label {}: expected 0 to {}", i + 1, labels[i], num_labels - 1);
}

}  // namespace

// log(sum exp) - logit, with the largest logit taken out so that nothing overflows.
double cross_entropy(std::span<const float> logits, std::size_t label) {
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - most);
  return std::log(sum) + most - static_cast<double>(logits[label]);
}

Evaluation score(const Answers& answers, std::span<const std::int32_t> labels) {
  const auto num_labels = static_cast<std::size_t>(answers.logits.dim(1));
  check_labels(labels, static_cast<std::int64_t>(num_labels));
  check(answers.logits.dim(0) == static_cast<std::int64_t>(labels.size()), "an answer a label");
  Evaluation result;
  result.confusion.assign(num_labels, std::vector<std::int64_t>(num_labels));
  std::int64_t correct = 0;
  const std::span<const float> logits = answers.logits.data<float>();
  for (std::size_t example = 0; example < labels.size(); ++example) {
    const std::span<const float> scores = logits.subspan(example * num_labels, num_labels);
    const auto best =
        static_cast<std::size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
    const auto label = static_cast<std::size_t>(labels[example]);
    // Losses are added in the order of the examples, so that batches do not change the last bits.
    result.loss += cross_entropy(scores, label);
    ++result.confusion[label][best];
    correct += best == label ? 1 : 0;
  }
  result.examples = static_cast<std::int64_t>(labels.size());
  result.tokens = answers.tokens;
  result.forward_seconds = answers.forward_seconds;
  const auto count = static_cast<double>(std::max<std::size_t>(1, labels.size()));
  result.loss /= count;
  result.accuracy = static_cast<double>(correct) / count;
  const Interval interval = wilson_interval(correct, result.examples);
  result.accuracy_low = interval.low;
  result.accuracy_high = interval.high;
  return result;
}

Evaluation evaluate(Classifier& classifier, ExampleSource& source, std::int64_t num_labels,
                    const EvaluationOptions& options) {
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < source.size(); ++i) labels.push_back(source.label(i));
  check_labels(labels, num_labels);  // before the work, not after it
  Answers answers = answer_all(classifier, source, options);
  if (labels.empty()) answers.logits = Tensor(DType::F32, {0, num_labels});
  check(answers.logits.dim(1) == num_labels, "as many logits as labels");
  return score(answers, labels);
}

}  // namespace lathe::train
