#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "lathe/data/tokenized_dataset.h"
#include "lathe/engine/executor.h"
#include "lathe/io/model.h"
#include "lathe/train/training_feed.h"

namespace lathe::train {

/// How well a model does by an objective's own measure.
struct LossEvaluation {
  double loss = 0;               ///< mean over what was predicted
  std::int64_t predictions = 0;  ///< tokens or labels that were predicted
  std::int64_t examples = 0;
  std::int64_t tokens = 0;
  double forward_seconds = 0;  ///< the model alone
};

/// The loss of an objective over a dataset, without dropout. Masks are the same every time.
/// `progress` hears of the examples done and may stop the work by returning false.
LossEvaluation evaluate_loss(const io::Model& model, const data::TokenizedDataset& dataset,
                             const Objective& objective, const engine::ExecutionOptions& options,
                             const std::function<bool(std::int64_t)>& progress = {});

}  // namespace lathe::train
