#pragma once

#include <string>

#include "lathe/data/tokenized_dataset.h"
#include "lathe/engine/executor.h"
#include "lathe/io/model.h"
#include "lathe/train/training_feed.h"

namespace lathe::train {

/// The mean loss of an objective over a dataset, without dropout. Masks are the same every time.
double evaluate_loss(const io::Model& model, const data::TokenizedDataset& dataset,
                     const Objective& objective, const std::string& executor,
                     const engine::ExecutionOptions& options);

}  // namespace lathe::train
