#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lathe/train/answers.h"
#include "lathe/train/classification_report.h"

namespace lathe::train {

/// How well a model tells which labels examples have.
struct LabelSetScore {
  double micro_f1 = 0;  ///< of all labels of all examples together
  double macro_f1 = 0;  ///< the mean over labels
  double exact = 0;     ///< share of examples whose labels are all right
  double loss = 0;      ///< mean cross-entropy of the sigmoids
  std::vector<ClassScore> labels;
  std::int64_t examples = 0;
  std::int64_t tokens = 0;
  double forward_seconds = 0;  ///< the model alone
};

/// Compares answers with the examples' labels: `targets` has 1 or 0 for each label of each example.
/// A label is given where its probability is above one half.
LabelSetScore score_label_sets(const Answers& answers, std::span<const float> targets);

}  // namespace lathe::train
