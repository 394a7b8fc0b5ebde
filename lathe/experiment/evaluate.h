#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lathe/data/tokenizer.h"
#include "lathe/engine/executor.h"
#include "lathe/experiment/callbacks.h"
#include "lathe/io/model.h"
#include "lathe/train/evaluation.h"
#include "lathe/train/loss_evaluation.h"

namespace lathe::experiment {

/// What a model is measured on, and in which batches.
struct EvaluateOptions {
  std::string data = {};
  std::string split = "test";
  std::int64_t length = 0;  ///< most tokens of a text; 0: the model's most
  std::int64_t limit = 0;   ///< examples, each label in its share; 0: all
  data::Truncation truncation = data::Truncation::Head;
  std::int64_t batch_tokens = 0;    ///< 0: what suits the device
  std::int64_t batch_examples = 0;  ///< instead of a number of tokens
  bool is_padded = false;           ///< pads and masks, as other frameworks do
  bool allows_fresh = false;        ///< measures a classifier nobody trained, to look at it
  std::uint64_t seed = 0;           ///< of the tokens that are hidden from a masked language model
};

/// How well a model does: one of the two.
struct ModelEvaluation {
  std::optional<train::Evaluation> classes;   ///< of a classifier
  std::optional<train::LossEvaluation> loss;  ///< of a language model
};

/// Measures a model on data: a classifier by its accuracy, a language model by its loss. Labels are
/// matched by name.
ModelEvaluation evaluate_on(const io::Model& model, const EvaluateOptions& options,
                            const engine::ExecutionOptions& execution,
                            const Callbacks& callbacks = {});

/// How well classifiers do together, and each alone.
struct EnsembleEvaluation {
  train::Evaluation together;  ///< by the mean of their probabilities
  std::vector<train::Evaluation> members;
};

/// Measures several classifiers as one. Each reads the texts by its own tokenizer; labels are
/// matched by name with the first's.
EnsembleEvaluation evaluate_ensemble(std::span<const io::Model> members,
                                     const EvaluateOptions& options,
                                     const engine::ExecutionOptions& execution,
                                     const Callbacks& callbacks = {});

/// Loads a model to be measured: what it was saved for, or a classifier where that cannot be.
io::Model load_for_evaluation(const std::string& model, const std::string& task,
                              std::uint64_t seed);

}  // namespace lathe::experiment
