#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lathe/data/batching.h"
#include "lathe/data/tokenizer.h"
#include "lathe/engine/executor.h"
#include "lathe/io/model.h"

namespace lathe::train {

/// The tokenizer of a model: its own, or its directory's. Fails when the vocabulary's
/// size is not the configuration's.
std::shared_ptr<const data::Tokenizer> load_tokenizer(const io::Model& model);

/// The longest sequence the model takes.
std::int64_t max_length(const io::Model& model);

/// How a classifier runs.
struct ClassifierOptions {
  bool allow_fresh = false;  ///< run a classifier nobody trained, to look at it
  bool is_padded = false;    ///< pad and mask, as other frameworks do, instead of packing
  engine::ExecutionOptions execution = {};
};

/// A model that gives logits for token sequences, ready to run batch after batch.
class TextClassifier {
 public:
  /// Fails when the classifier's own weights are fresh: its answers would mean nothing.
  TextClassifier(const io::Model& model, const ClassifierOptions& options);

  /// One row of logits for each sequence of the batch.
  Tensor logits(const data::Batch& batch);
  engine::Executor& executor() { return *executor_; }

 private:
  ClassifierOptions options_;
  std::int32_t padding_id_ = 0;
  std::unique_ptr<engine::Executor> executor_;
};

}  // namespace lathe::train
