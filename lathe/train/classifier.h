#pragma once

#include <memory>
#include <string>

#include "lathe/core/pass.h"
#include "lathe/engine/executor.h"
#include "lathe/io/model.h"

namespace lathe::train {

/// How a classifier runs.
struct ClassifierOptions {
  bool allows_fresh = false;  ///< run a classifier nobody trained, to look at it
  bool is_padded = false;     ///< the graph's own padded form, instead of packed sequences
  engine::ExecutionOptions execution = {};
};

/// A model that gives logits for examples, or for their tokens, ready to run batch after batch.
class Classifier {
 public:
  /// Fails when the classifier's own weights are fresh: its answers would mean nothing.
  Classifier(const io::Model& model, const ClassifierOptions& options);

  /// One row of logits for each example, or of a model for `tokens` for each token. `feed` may hold
  /// more than the graph reads. Fails where one is NaN or infinite: no label follows from it.
  Tensor logits(const Feed& feed);
  engine::Executor& executor() { return *executor_; }
  /// Tokens in a batch that suit the device.
  std::int64_t batch_tokens() const { return batch_tokens_; }

 private:
  std::string place_;
  std::int64_t batch_tokens_;
  std::unique_ptr<engine::Executor> executor_;
};

}  // namespace lathe::train
