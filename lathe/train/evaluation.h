#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lathe/train/answers.h"

namespace lathe::train {

/// How well a classifier does on labelled examples.
struct Evaluation {
  double accuracy = 0;
  double accuracy_low = 0;  ///< 95 % interval (Wilson)
  double accuracy_high = 0;
  double loss = 0;  ///< mean cross-entropy
  std::int64_t examples = 0;
  std::int64_t tokens = 0;
  double forward_seconds = 0;                        ///< the model alone
  std::vector<std::vector<std::int64_t>> confusion;  ///< [true label][predicted label]
};

/// The 95 % interval of a share of `correct` out of `total`.
struct Interval {
  double low = 0;
  double high = 0;
};
Interval wilson_interval(std::int64_t correct, std::int64_t total);

/// The cross-entropy of one row of logits, by which `label` should be the highest.
double cross_entropy(std::span<const float> logits, std::size_t label);

/// How well answers fit the examples' labels; fails on a label that is not below their number.
Evaluation score(const Answers& answers, std::span<const std::int32_t> labels);

/// Evaluates every example once. Results do not depend on the batches. Fails on an example without
/// a label below `num_labels`.
Evaluation evaluate(Classifier& classifier, ExampleSource& source, std::int64_t num_labels,
                    const EvaluationOptions& options = {});

}  // namespace lathe::train
