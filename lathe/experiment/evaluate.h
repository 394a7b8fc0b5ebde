#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lathe/data/dataset.h"
#include "lathe/data/tokenizer.h"
#include "lathe/engine/executor.h"
#include "lathe/experiment/callbacks.h"
#include "lathe/io/model.h"
#include "lathe/train/evaluation.h"
#include "lathe/train/label_set_score.h"
#include "lathe/train/loss_evaluation.h"
#include "lathe/train/number_score.h"
#include "lathe/train/word_score.h"

namespace lathe::experiment {

/// What a model is measured on, and in which batches.
struct EvaluateOptions {
  std::string data = {};
  std::string split = {};   ///< nothing: `test`, or all of a single table
  std::int64_t length = 0;  ///< most tokens of a text; 0: as the model was trained
  std::int64_t limit = 0;   ///< examples, each label in its share; 0: all
  std::optional<data::Truncation> truncation = {};  ///< nothing: as the model was trained
  data::ColumnOptions columns = {};                 ///< of tables
  std::int64_t batch_tokens = 0;                    ///< 0: what suits the device
  std::int64_t batch_examples = 0;                  ///< instead of a number of tokens
  bool is_padded = false;                           ///< pads and masks, as other frameworks do
  std::string cache = {};  ///< how a causal language model keeps keys and values; empty: as floats
  bool allows_fresh = false;  ///< measures a classifier nobody trained, to look at it
  std::uint64_t seed = 0;     ///< of the tokens that are hidden from a masked language model
};

/// How well a model does: one of these.
struct ModelEvaluation {
  std::optional<train::Evaluation> classes = {};   ///< of a classifier
  std::optional<train::NumberScore> numbers = {};  ///< of a model of numbers
  std::optional<train::LabelSetScore> sets = {};   ///< of a model of sets of labels
  std::optional<train::WordScore> words = {};      ///< of a model that labels words
  std::optional<train::LossEvaluation> loss = {};  ///< of a language model
  /// Of weights in memory, the layouts of products included; 0 where that is not known.
  std::int64_t weight_bytes = 0;
};

/// Measures a model on data: a classifier by its accuracy, a model of numbers by its squared error
/// and correlations, one of sets of labels by F1, one that labels words by accuracy and by F1 of
/// entities, a language model by its loss. Labels are matched by name.
ModelEvaluation evaluate_on(const io::Model& model, const EvaluateOptions& options,
                            const engine::ExecutionOptions& execution,
                            const Callbacks& callbacks = {});

/// The same on examples that are read (`read_for`); their labels must be the model's.
ModelEvaluation evaluate_examples(const io::Model& model, const data::Dataset& examples,
                                  const EvaluateOptions& options,
                                  const engine::ExecutionOptions& execution,
                                  const Callbacks& callbacks = {});

/// The same of a classifier, a model of numbers or of sets whose examples are fed by a source; what
/// numbers and sets are compared with is `targets`.
ModelEvaluation evaluate_source(train::Classifier& classifier, const io::Model& model,
                                train::ExampleSource& source, std::span<const float> targets,
                                const train::EvaluationOptions& batches);

/// Reads the examples that a model is to be measured on, with its labels; fails where they do not
/// fit it.
data::Dataset read_for(const io::Model& model, const EvaluateOptions& options,
                       const ShouldStop& should_stop = {});

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
