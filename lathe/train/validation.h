#pragma once

#include <cstdint>
#include <optional>

#include "lathe/train/evaluation.h"
#include "lathe/train/label_set_score.h"
#include "lathe/train/number_score.h"
#include "lathe/train/word_score.h"

namespace lathe::train {

/// What looking at held-out examples gave.
struct Validation {
  std::int64_t step = 0;
  double epoch = 0;
  double loss = 0;
  /// Higher is better: accuracy, F1 of all labels of sets or of entities, or the negated loss.
  double score = 0;
  std::optional<Evaluation> classes = {};  ///< of a classifier
  std::optional<NumberScore> numbers = {};
  std::optional<LabelSetScore> sets = {};
  std::optional<WordScore> words = {};
};

}  // namespace lathe::train
