#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lathe/experiment/callbacks.h"
#include "lathe/experiment/evaluate.h"
#include "lathe/experiment/fine_tune_options.h"
#include "lathe/train/validation.h"

namespace lathe::experiment {

/// What is known of a run before its first step.
struct FineTuneStart {
  const FineTuneOptions& options;  ///< with what was left open decided
  const io::Model& model;
  std::int64_t examples = 0;
  std::int64_t held_out = 0;
  std::int64_t length = 0;                  ///< most tokens of a text; 0: the model reads none
  std::int64_t resumed_step = 0;            ///< 0: it starts from the beginning
  const std::vector<std::string>& trained;  ///< the only parameters that train; empty: all
};

/// What a run tells on its way, besides progress; each may be empty.
struct FineTuneCallbacks : Callbacks {
  std::function<void(const FineTuneStart&)> start = {};
  std::function<void(const train::StepReport&)> step = {};
  std::function<void(const train::Validation&)> validation = {};
};

/// What a run leaves.
struct FineTuned {
  io::Model model;
  train::TrainingResult training;
  std::optional<train::Evaluation> test;  ///< of a classifier whose data has a split `test`
  /// The same with what other kinds of labels are measured by; empty where nothing was.
  ModelEvaluation measured = {};
};

/// Trains a model, fully or by LoRA, from a file or from nothing, and tests it.
///
/// With `out` the run leaves checkpoints, metrics and the trained model there, and can be resumed
/// to the same bits. A run that was asked to stop says so in `training.ending`.
FineTuned fine_tune(FineTuneOptions options, const engine::ExecutionOptions& execution,
                    const FineTuneCallbacks& callbacks = {});

}  // namespace lathe::experiment
