#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "lathe/train/classifier.h"
#include "lathe/train/example_source.h"

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

/// Batches to evaluate in: by tokens, or by number of examples.
struct EvaluationOptions {
  std::int64_t batch_tokens = 4096;
  std::int64_t batch_examples = 0;  ///< 0: by tokens alone
  /// Hears of progress and may stop the work by returning false; what was done is then thrown away.
  std::function<bool(std::int64_t examples_done, std::int64_t tokens_done)> progress = {};
};

/// The 95 % interval of a share of `correct` out of `total`.
struct Interval {
  double low = 0;
  double high = 0;
};
Interval wilson_interval(std::int64_t correct, std::int64_t total);

/// Evaluates every example once. Results do not depend on the batches. Fails on an example without
/// a label below `num_labels`.
Evaluation evaluate(Classifier& classifier, ExampleSource& source, std::int64_t num_labels,
                    const EvaluationOptions& options = {});

/// Probabilities of one row of logits.
std::vector<double> softmax(std::span<const float> logits);

}  // namespace lathe::train
