#pragma once

#include <cstdint>
#include <functional>

#include "lathe/data/batching.h"

namespace lathe::train {

/// Batches to evaluate in: by tokens, or by number of examples.
struct EvaluationOptions {
  std::int64_t batch_tokens = 0;    ///< 0: what suits the device
  std::int64_t batch_examples = 0;  ///< 0: by tokens alone
  /// Hears of progress and may stop the work by returning false; what was done is then thrown away.
  std::function<bool(std::int64_t examples_done, std::int64_t tokens_done)> progress = {};

  /// How large batches are; of `tokens` where nobody says.
  data::BatchOptions batches(std::int64_t tokens) const {
    data::BatchOptions result;
    result.max_examples = batch_examples;
    if (batch_examples == 0) result.max_tokens = batch_tokens > 0 ? batch_tokens : tokens;
    return result;
  }
};

}  // namespace lathe::train
