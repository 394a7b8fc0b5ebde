#pragma once

#include <cstdint>

#include "lathe/engine/executor.h"
#include "lathe/io/model.h"
#include "lathe/train/evaluation_options.h"
#include "lathe/train/example_source.h"

namespace lathe::train {

/// How well a model does by an objective's own measure.
struct LossEvaluation {
  double loss = 0;               ///< mean over what was predicted
  std::int64_t predictions = 0;  ///< tokens or labels that were predicted
  std::int64_t examples = 0;
  std::int64_t tokens = 0;
  double forward_seconds = 0;  ///< the model alone
};

/// The loss of a model over the examples of a source, without dropout.
LossEvaluation evaluate_loss(const io::Model& model, ExampleSource& source,
                             const engine::ExecutionOptions& execution,
                             const EvaluationOptions& options = {});

}  // namespace lathe::train
