#pragma once

#include <functional>
#include <optional>
#include <string>

#include "lathe/data/dataset.h"
#include "lathe/engine/executor.h"
#include "lathe/io/model.h"
#include "lathe/train/augmentation.h"
#include "lathe/train/run_directory.h"
#include "lathe/train/trainer.h"
#include "lathe/train/training_graph.h"

namespace lathe::train {

/// Where a run is before one of its steps.
struct BeforeStep {
  const Graph& graph;  ///< the training graph
  engine::Executor& executor;
  std::int64_t done = 0, num_steps = 0;
};

/// A run that paused: what one goes on from whose model was changed meanwhile.
struct PausedRun {
  State state;  ///< the model's and the optimizer's
  TrainingProgress progress;
};

/// Everything about a run but the model and the data. The objective is the graph's; batches a step
/// are the trainer's.
struct TrainOptions {
  TrainerOptions trainer = {};
  TrainingGraphOptions graph = {};
  /// What teachers answer to the examples: probabilities f32[examples, labels] at the temperature
  /// of the graph's distillation. Empty: the model learns from labels alone.
  std::optional<Tensor> soft_labels = {};
  double mask_share = 0.15;                         ///< of tokens to guess, for `mlm`
  std::int64_t length = 0;                          ///< most tokens of a text; 0: the model's most
  std::optional<data::Truncation> truncation = {};  ///< nothing: as the model was trained
  Augmentation augmentation = {};                   ///< of images
  /// The examples as the model is fed with them, made before for several runs that may read them at
  /// once (make_evaluation_source); null: texts are tokenized while the run is under way.
  ExampleSource* source = nullptr;
  /// Null: the run begins. Otherwise it goes on, with the moments of parameters that were there
  /// before; with the same model to the same bits as one that never paused.
  const PausedRun* after = nullptr;
  engine::ExecutionOptions execution = {};
  int keep_checkpoints = 2;
  /// Whether a run that ends leaves its last checkpoint and the model in its directory. Without,
  /// the directory is for interruptions and pauses alone.
  bool leaves_model = true;
  /// Called before every step; may give states other values, as a function of the step and of the
  /// states alone, or a resumed run would differ. May be empty.
  std::function<void(const BeforeStep&)> before_step = {};
  /// Whether the weights after so many steps may be chosen as the best. Empty: all may.
  std::function<bool(std::int64_t done, std::int64_t num_steps)> is_eligible = {};
  /// What becomes of the trained model before it is written, such as packing. May be empty.
  std::function<io::Model(io::Model)> finish = {};
};

/// What a caller may want to hear of; each may be empty.
struct TrainCallbacks {
  std::function<void(const StepReport&)> step = {};
  std::function<void(const Validation&)> validation = {};
  std::function<bool()> should_stop = {};
};

/// A model after its training, with the weights of the best validation where there was one.
struct TrainOutcome {
  io::Model model;
  TrainingResult result;
};

/// Trains a model on texts.
///
/// `validation` is looked at on the way, and the best weights are kept; empty: the last ones are.
/// With a directory the run leaves its traces there and goes on from what it finds; without one
/// nothing is written.
TrainOutcome train_model(io::Model model, const data::Dataset& examples,
                         const data::Dataset& validation, const TrainOptions& options,
                         const TrainCallbacks& callbacks = {}, RunDirectory* directory = nullptr);

}  // namespace lathe::train
