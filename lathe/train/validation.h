#pragma once

#include <cstdint>
#include <optional>

#include "lathe/train/evaluation.h"

namespace lathe::train {

/// What looking at held-out examples gave.
struct Validation {
  std::int64_t step = 0;
  double epoch = 0;
  double loss = 0;
  double score = 0;                        ///< higher is better: accuracy, or the negated loss
  std::optional<Evaluation> classes = {};  ///< of a classifier
};

}  // namespace lathe::train
