#include "lathe/train/train_model.h"

#include "lathe/core/error.h"
#include "lathe/train/loss_evaluation.h"
#include "lathe/train/non_finite.h"
#include "lathe/train/text_classifier.h"
#include "lathe/train/text_source.h"

namespace lathe::train {
namespace {

void check_labels(const data::Dataset& examples, const io::Model& model,
                  const std::string& objective) {
  if (objective != "classify" && objective != "regression") return;
  const auto num_labels = static_cast<std::int64_t>(model.label_names.size());
  for (std::size_t i = 0; i < examples.examples.size(); ++i) {
    const std::int32_t label = examples.examples[i].label;
    if (label == data::kNoLabel) fail("example {} has no label", i + 1);
    if (objective == "classify" && label >= num_labels)
      fail("example {} has label {}, but the model knows 0 to {}", i + 1, label, num_labels - 1);
  }
}

std::int64_t length_of(const TrainOptions& options, const io::Model& model) {
  const std::int64_t longest = max_length(model);
  const std::int64_t length = options.length == 0 ? longest : options.length;
  if (length < 3 || length > longest)
    fail("a length of {} tokens: expected 3 to {}, the model's longest sequence", length, longest);
  return length;
}

// The model with the values that `state` has for its states.
io::Model with_state(io::Model model, const State& state) {
  for (auto& [name, tensor] : model.state)
    if (const auto found = state.find(name); found != state.end()) tensor = found->second;
  model.fresh.clear();
  return model;
}

class Validator {
 public:
  Validator(const io::Model& model, const data::Dataset& examples, const data::Tokenizer& tokenizer,
            const Objective& objective, const TrainOptions& options, const ShouldStop& should_stop)
      : model_(model), objective_(objective), options_(options) {
    ThreadPool alone(1);
    ThreadPool& pool = options.execution.pool ? *options.execution.pool : alone;
    tokens_ = data::tokenize(examples, tokenizer, length_of(options, model), options.truncation,
                             pool, should_stop);
  }

  Validation validate(const State& state, std::int64_t step) const {
    const io::Model current = with_state(model_, state);
    Validation result{.step = step};
    if (objective_.name != "classify") {
      result.loss = evaluate_loss(current, tokens_, objective_, options_.execution).loss;
      result.score = -result.loss;
      return result;
    }
    ClassifierOptions running;
    running.execution = options_.execution;
    TextClassifier classifier(current, running);
    result.classes =
        evaluate(classifier, tokens_, static_cast<std::int64_t>(current.label_names.size()));
    result.loss = result.classes->loss;
    result.score = result.classes->accuracy;
    return result;
  }

 private:
  const io::Model& model_;
  const Objective& objective_;
  const TrainOptions& options_;
  data::TokenizedDataset tokens_;
};

}  // namespace

TrainOutcome train_model(io::Model model, const data::Dataset& examples,
                         const data::Dataset& validation, const TrainOptions& options,
                         const TrainCallbacks& callbacks, RunDirectory* directory) {
  if (examples.examples.empty()) fail("there are no examples to train on");
  const std::shared_ptr<const data::Tokenizer> tokenizer = load_tokenizer(model);
  const Objective objective =
      make_objective(options.graph.objective, *tokenizer, options.mask_share, options.trainer.seed);
  check_labels(examples, model, objective.name);
  check_labels(validation, model, objective.name);

  TrainingProgress progress;
  State state = model.state;
  if (directory != nullptr) {
    if (const std::optional<TrainingCheckpoint>& checkpoint = directory->checkpoint()) {
      progress = checkpoint->progress;
      state = checkpoint->state;
    }
    directory->begin(model);
  }
  // Tokenizing begins here and runs beside the planning of the graph.
  StreamedTexts texts(
      examples, *tokenizer, length_of(options, model), options.truncation,
      next_examples(options.trainer, static_cast<std::int64_t>(examples.examples.size()), progress),
      {.objective = objective});
  TrainingGraphOptions graph_options = options.graph;
  graph_options.accumulation = static_cast<int>(options.trainer.accumulation);
  const TrainingGraph training = make_training_graph(model, graph_options, state);
  const auto executor = engine::make_executor(training.graph, std::move(state), options.execution);
  std::optional<Validator> validator;
  if (!validation.examples.empty())
    validator.emplace(model, validation, *tokenizer, objective, options, callbacks.should_stop);

  TrainerHooks hooks;
  double epochs_done = 0;
  hooks.report = [&](const StepReport& report) {
    epochs_done = report.epoch;
    if (directory != nullptr) directory->log(report);
    if (callbacks.step) callbacks.step(report);
  };
  if (validator)
    hooks.validate = [&](const State& values, const TrainingProgress& at) {
      Validation result = validator->validate(values, at.step);
      result.epoch = epochs_done;
      if (directory != nullptr) directory->log(result);
      if (callbacks.validation) callbacks.validation(result);
      return result.score;
    };
  if (directory != nullptr) {
    hooks.save = [&](const State& values, const TrainingProgress& at) {
      directory->save(model, values, at, options.keep_checkpoints);
    };
    hooks.last_checkpoint = [&] { return directory->last_checkpoint(); };
  }
  hooks.should_stop = callbacks.should_stop;
  hooks.explain = [&](const State& values, const Feed& feed) {
    return explain_non_finite(training.graph, values, feed);
  };

  TrainOutcome outcome;
  outcome.result = run_training(*executor, texts, options.trainer, hooks, progress);
  const TrainingResult& result = outcome.result;
  const bool has_best =
      validator && result.progress.best_score && result.progress.best_step != result.progress.step;
  if (has_best && !result.best && directory != nullptr)
    outcome.model = with_state(model, directory->read_model(result.progress.best_step).state);
  else
    outcome.model = with_state(model, has_best && result.best ? *result.best : result.state);
  if (directory != nullptr && result.ending != Ending::Interrupted)
    directory->finish(options.finish ? options.finish(outcome.model) : outcome.model);
  return outcome;
}

}  // namespace lathe::train
