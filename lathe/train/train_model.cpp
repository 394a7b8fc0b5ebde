#include "lathe/train/train_model.h"

#include "lathe/core/error.h"
#include "lathe/train/loss_evaluation.h"
#include "lathe/train/make_source.h"
#include "lathe/train/non_finite.h"
#include "lathe/train/soft_labels.h"
#include "lathe/train/targets.h"
#include "lathe/train/training_feed.h"

namespace lathe::train {
namespace {

void check_labels(const data::Dataset& examples, const io::Model& model,
                  const std::string& objective, bool may_lack = false) {
  if (objective != "classify" && !labels_of(objective)) return;
  const auto num_labels = static_cast<std::int64_t>(model.label_names.size());
  for (std::size_t i = 0; i < examples.examples.size(); ++i) {
    const std::int32_t label = examples.examples[i].label;
    if (label == data::kNoLabel && !may_lack) fail("example {} has no label", i + 1);
    if (objective == "classify" && label >= num_labels)
      fail("example {} has label {}, but the model knows 0 to {}", i + 1, label, num_labels - 1);
  }
}

SourceOptions source_options(const TrainOptions& options) {
  return {.objective = options.graph.objective,
          .length = options.length,
          .truncation = options.truncation,
          .mask_share = options.mask_share,
          .seed = options.trainer.seed,
          .augmentation = options.augmentation};
}

// Gives the states of a model what the optimizer had of them in the run before. Returns the names
// of those that are new since, or of another shape.
std::vector<std::string> take_moments(State& state, const PausedRun& before) {
  State moments;
  std::vector<std::string> late;
  for (const auto& [name, tensor] : state) {
    const auto found = before.state.find(name);
    if (found == before.state.end() || found->second.dims() != tensor.dims()) {
      late.push_back(name);
      continue;
    }
    for (std::string& moment : possible_moments(name))
      if (const auto kept = before.state.find(moment); kept != before.state.end())
        moments.emplace(std::move(moment), kept->second);
  }
  state.merge(moments);
  return late;
}

// The model with the values that `state` has for its states.
io::Model with_state(io::Model model, const State& state) {
  for (auto& [name, tensor] : model.state)
    if (const auto found = state.find(name); found != state.end()) tensor = found->second;
  model.fresh.clear();
  return model;
}

Validation validate(const io::Model& model, ExampleSource& examples, std::span<const float> targets,
                    const TrainOptions& options) {
  Validation result;
  const std::optional<LabelKind> labels = labels_of(options.graph.objective);
  if (options.graph.objective == "tokens") {
    Classifier classifier(model, {.execution = options.execution});
    result.words = evaluate_words(classifier, examples, model.label_names);
    result.loss = result.words->loss;
    result.score = result.words->score();
    return result;
  }
  if (options.graph.objective != "classify" && !labels) {
    result.loss = evaluate_loss(model, examples, options.execution).loss;
    result.score = -result.loss;
    return result;
  }
  Classifier classifier(model, {.execution = options.execution});
  if (labels == LabelKind::Number) {
    result.numbers = score_numbers(answer_all(classifier, examples), targets);
    result.loss = result.numbers->loss;
    result.score = -result.loss;
    return result;
  }
  if (labels == LabelKind::Set) {
    result.sets = score_label_sets(answer_all(classifier, examples), targets);
    result.loss = result.sets->loss;
    result.score = result.sets->micro_f1;
    return result;
  }
  result.classes =
      evaluate(classifier, examples, static_cast<std::int64_t>(model.label_names.size()));
  result.loss = result.classes->loss;
  result.score = result.classes->accuracy;
  return result;
}

}  // namespace

TrainOutcome train_model(io::Model model, const data::Dataset& examples,
                         const data::Dataset& validation, const TrainOptions& options,
                         const TrainCallbacks& callbacks, RunDirectory* directory) {
  if (examples.examples.empty()) fail("there are no examples to train on");
  task_of(options.graph.objective);  // refuses an unknown one
  check_labels(examples, model, options.graph.objective, options.soft_labels.has_value());
  check_labels(validation, model, options.graph.objective);

  TrainingProgress progress;
  State state = model.state;
  TrainingGraphOptions graph_options = options.graph;
  TrainerOptions trainer = options.trainer;
  if (options.after != nullptr) {
    progress = options.after->progress;
    progress.best_score.reset();  // another model's
    progress.num_worse = 0;
    trainer.changed_at = progress.step;
    graph_options.late = take_moments(state, *options.after);
  }
  if (directory != nullptr) {
    if (const std::optional<TrainingCheckpoint>& checkpoint = directory->checkpoint()) {
      progress = checkpoint->progress;
      state = checkpoint->state;
    }
    directory->begin(model);
  }
  // Tokenizing begins here and runs beside the planning of the graph.
  std::unique_ptr<ExampleSource> source;
  if (options.source == nullptr)
    source = make_training_source(model, examples, source_options(options),
                                  next_examples(trainer, examples.labels(), progress));
  check(options.source == nullptr || (!options.soft_labels && options.graph.class_weights.empty()),
        "soft labels and weights of a source of one's own");
  if (options.soft_labels)
    source = std::make_unique<SoftlyLabelled>(std::move(source), *options.soft_labels);
  if (!options.graph.class_weights.empty())
    source = std::make_unique<WithClassWeights>(std::move(source), options.graph.class_weights);
  graph_options.accumulation = static_cast<int>(options.trainer.accumulation);
  // A source of one's own may have them already.
  if (options.source == nullptr)
    graph_options.distillation.has_soft_labels = options.soft_labels.has_value();
  const TrainingGraph training = make_training_graph(model, graph_options, state);
  const auto executor = engine::make_executor(training.graph, std::move(state), options.execution);
  std::unique_ptr<ExampleSource> held_out;
  if (!validation.examples.empty())
    held_out = make_evaluation_source(model, validation, source_options(options),
                                      options.execution.pool, callbacks.should_stop);

  TrainerHooks hooks;
  hooks.is_eligible = options.is_eligible;
  if (options.before_step)
    hooks.before_step = [&](std::int64_t done, std::int64_t num_steps) {
      options.before_step({training.graph, *executor, done, num_steps});
    };
  double epochs_done = 0;
  std::int64_t num_steps = 0;
  hooks.report = [&](const StepReport& report) {
    epochs_done = report.epoch;
    num_steps = report.num_steps;
    if (directory != nullptr) directory->log(report);
    if (callbacks.step) callbacks.step(report);
  };
  if (held_out != nullptr)
    hooks.validate = [&](const State& values, const TrainingProgress& at) {
      Validation result =
          validate(with_state(model, values), *held_out, validation.targets, options);
      result.step = at.step;
      result.epoch = epochs_done;
      if (directory != nullptr) directory->log(result);
      if (callbacks.validation) callbacks.validation(result);
      return result.score;
    };
  if (directory != nullptr) {
    hooks.save = [&](State values, const TrainingProgress& at) {
      if (!options.leaves_model && at.step == num_steps) return;
      for (const std::string& name : training.teachers) values.erase(name);
      directory->save(model, values, at, options.keep_checkpoints);
    };
    hooks.last_checkpoint = [&] { return directory->last_checkpoint(); };
  }
  hooks.should_stop = callbacks.should_stop;
  hooks.explain = [&](const State& values, const Feed& feed) {
    return explain_non_finite(training.graph, values, feed);
  };

  TrainOutcome outcome;
  outcome.result = run_training(*executor, options.source != nullptr ? *options.source : *source,
                                trainer, hooks, progress);
  const TrainingResult& result = outcome.result;
  const bool has_best = held_out != nullptr && result.progress.best_score &&
                        result.progress.best_step != result.progress.step;
  if (has_best && !result.best && directory != nullptr)
    outcome.model = with_state(model, directory->read_model(result.progress.best_step).state);
  else
    outcome.model = with_state(model, has_best && result.best ? *result.best : result.state);
  const bool is_over = result.ending == Ending::Finished || result.ending == Ending::StoppedEarly;
  if (directory != nullptr && is_over && options.leaves_model)
    directory->finish(options.finish ? options.finish(outcome.model) : outcome.model);
  return outcome;
}

}  // namespace lathe::train
