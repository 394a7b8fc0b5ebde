#include "lathe/search/train_candidate.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "lathe/compress/packed_weights.h"
#include "lathe/compress/quantizers.h"
#include "lathe/core/error.h"
#include "lathe/experiment/run_record.h"
#include "lathe/experiment/student.h"
#include "lathe/search/compress_candidate.h"
#include "lathe/search/parent_weights.h"
#include "lathe/train/soft_labels.h"
#include "lathe/train/train_model.h"

namespace lathe::search {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// Thrown through the training of a trial that is not worth going on with: the trainer's own way to
// stop leaves a checkpoint, which would be written to be removed.
struct GivenUp {};

// Training's options: the recipe's, on what a short run does well with.
experiment::FineTuneOptions recipe_of(const Candidate& candidate, std::uint64_t seed) {
  experiment::FineTuneOptions options;
  options.trainer.epochs = 1;
  options.trainer.cycles = 1;
  nlohmann::json recipe = candidate.recipe;
  recipe.erase(kEpochsAfter);
  recipe.erase(kOwnWeight);
  experiment::set_options(options, recipe);
  options.trainer.seed = seed;
  // The end alone is checkpointed, and an interruption.
  options.trainer.checkpoint_every = std::int64_t{1} << 40;
  return options;
}

io::Model with_values(io::Model model, const State& state) {
  for (auto& [name, tensor] : model.state)
    if (const auto found = state.find(name); found != state.end()) tensor = found->second;
  model.fresh.clear();
  return model;
}

}  // namespace

io::Model as_stored(io::Model model) {
  if (compress::is_quantized(model.graph)) compress::pack_model(model, false);
  return model;
}

int Rungs::resource(int rung) const {
  int result = 1;
  for (int i = 0; i < rung; ++i) result *= factor;
  return result;
}

std::int64_t Rungs::step(int rung, std::int64_t num_steps) const {
  const std::int64_t all = resource(count - 1);
  return (num_steps * resource(rung) + all - 1) / all;
}

io::Model build_candidate(const TrialData& data, const Candidate& candidate, std::uint64_t seed,
                          const engine::ExecutionOptions& execution) {
  const io::Model& base = data.base();
  if (base.fresh.empty()) {
    io::Model model = base;
    compress_candidate(model, candidate, data.calibration(), seed, execution);
    return model;
  }
  Attributes config = base.config;
  for (const auto& [key, value] : candidate.architecture) config[key] = value;
  // Any builder of the family: every key is given.
  io::Model model = io::load_model(
      data.builder(), {.task = base.task,
                       .inputs = experiment::inputs_with_labels(*base.family, base.task),
                       .num_labels = static_cast<std::int64_t>(base.label_names.size()),
                       .config = std::move(config),
                       .seed = seed});
  model.tokenizer = base.tokenizer;
  model.label_names = base.label_names;
  model.reading = base.reading;
  model.images = base.images;
  if (data.parent() != nullptr) take_weights(model, *data.parent());
  return model;
}

train::Evaluation measure(const io::Model& model, train::ExampleSource& examples,
                          const engine::ExecutionOptions& execution,
                          const experiment::Callbacks& callbacks) {
  train::Classifier classifier(model, {.execution = execution});
  return train::evaluate(
      classifier, examples, static_cast<std::int64_t>(model.label_names.size()),
      {.progress = [&](std::int64_t, std::int64_t) { return !callbacks.stops(); }});
}

namespace {

// A part of a candidate's training: from the end of epoch `begin` to that of `end`, of `total`.
// Stages are one run that pauses: order of rows, dropout, rate and moments go on.
struct Stage {
  std::int64_t begin = 0, end = 0, total = 0;
  const train::PausedRun* after = nullptr;  // the stage before
  train::PausedRun* paused = nullptr;       // gets what the next one goes on from
  train::ExampleSource* taught = nullptr;   // examples with soft labels, instead of the search's
};

// Trains and measures a model, or measures it alone where the stage has no epochs. One that pauses
// is not measured.
std::optional<TrainedCandidate> train_stage(const TrialData& data, const io::Model& model,
                                            experiment::FineTuneOptions recipe, const Stage& stage,
                                            const nlohmann::json& record, const Rungs& rungs,
                                            const fs::path& directory, bool keeps,
                                            const engine::ExecutionOptions& execution,
                                            const CandidateCallbacks& callbacks) {
  const Clock::time_point start = Clock::now();
  const auto measure_into = [&](TrainedCandidate& result) {
    const train::Evaluation measured =
        measure(result.model, data.measured(), execution, callbacks.callbacks);
    result.accuracy = measured.accuracy;
    result.loss = measured.loss;
  };
  if (stage.begin == stage.end) {
    TrainedCandidate result{.model = model};
    measure_into(result);
    result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (keeps) {
      std::error_code ignored;
      fs::remove_all(directory, ignored);
      fs::create_directories(directory.parent_path());
      io::write_checkpoint(directory, as_stored(model));
    }
    return result;
  }
  recipe.trainer.epochs = stage.total;
  recipe.trainer.pause_after = stage.end;
  train::TrainOptions options;
  options.after = stage.after;
  options.finish = as_stored;
  options.trainer = recipe.trainer;
  options.graph = recipe.graph;
  options.source = stage.taught != nullptr ? stage.taught : data.training().get();
  options.execution = execution;
  options.keep_checkpoints = 1;
  options.leaves_model = keeps;
  options.graph.distillation.has_soft_labels = data.has_teachers() || stage.taught != nullptr;
  options.before_step = [&](const train::BeforeStep& now) {
    const auto accuracy_on = [&](train::ExampleSource& rows) {
      return measure(with_values(model, now.executor.state()), rows, execution, callbacks.callbacks)
          .accuracy;
    };
    const std::int64_t epoch_steps = std::max<std::int64_t>(1, now.num_steps / stage.total);
    if (callbacks.epoch && now.done > stage.begin * epoch_steps && now.done % epoch_steps == 0)
      callbacks.epoch(now.done / epoch_steps, accuracy_on(data.measured()));
    if (!callbacks.goes_on) return;
    for (int rung = 0; rung + 1 < rungs.count; ++rung)
      if (rungs.step(rung, now.num_steps) == now.done &&
          !callbacks.goes_on(rungs.resource(rung), accuracy_on(data.early())))
        throw GivenUp();
  };
  train::TrainCallbacks training;
  training.step = [&](const train::StepReport& step) {
    if (callbacks.loss) callbacks.loss(step.step, step.loss);
    callbacks.callbacks.tell({.activity = "training",
                              .unit = "steps",
                              .done = step.step,
                              .total = step.num_steps,
                              .note = fmt::format("loss {:.4f}", step.loss)});
  };
  training.should_stop = callbacks.callbacks.should_stop;

  std::optional<train::RunDirectory> run = train::RunDirectory::open(directory);
  if (!run) run = train::RunDirectory::create(directory, {{"search", record}});
  const auto leave = [&] {
    run.reset();
    std::error_code ignored;
    fs::remove_all(directory, ignored);
  };
  try {
    train::TrainOutcome outcome =
        train::train_model(model, data.examples(), {}, options, training, &*run);
    if (outcome.result.ending == train::Ending::Interrupted) throw Interrupted();
    TrainedCandidate result{.model = std::move(outcome.model)};
    if (stage.paused != nullptr)
      *stage.paused = {std::move(outcome.result.state), outcome.result.progress};
    if (stage.paused == nullptr || callbacks.epoch) measure_into(result);
    if (callbacks.epoch) callbacks.epoch(stage.end, result.accuracy);
    result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (!keeps) {
      leave();
    } else if (stage.paused == nullptr) {
      std::error_code ignored;
      fs::remove_all(directory / "checkpoints", ignored);
    }
    return result;
  } catch (const GivenUp&) {
    leave();
    return std::nullopt;
  } catch (const UserError&) {
    leave();
    throw;
  }
}

}  // namespace

bool is_compressed_on_the_way(const TrialData& data, const Candidate& candidate) {
  return !data.base().fresh.empty() && candidate.is_compressed();
}

std::int64_t epochs_after(const Candidate& candidate) {
  return candidate.recipe.value(kEpochsAfter, std::int64_t{0});
}

namespace {

// The share of the loss behind the compression that is the model's own answers before it.
double own_weight(const TrialData& data, const Candidate& candidate) {
  const double weight = candidate.recipe.value(kOwnWeight, 0.0);
  if (!(weight >= 0 && weight <= 1)) fail("own-weight {}: expected 0 to 1", weight);
  if (weight > 0 && data.has_teachers()) fail("own-weight {}: there are teachers already", weight);
  return weight;
}

// The examples of training with what the model says of them now.
std::unique_ptr<train::ExampleSource> taught_by(const io::Model& model, const TrialData& data,
                                                double temperature,
                                                const engine::ExecutionOptions& execution,
                                                const experiment::Callbacks& callbacks) {
  train::Classifier classifier(model, {.execution = execution});
  const train::Answers answers = train::answer_all(
      classifier, *data.training(),
      {.progress = [&](std::int64_t, std::int64_t) { return !callbacks.stops(); }});
  return std::make_unique<train::SoftlyLabelled>(
      data.training(), train::mean_probabilities({{answers.logits}}, temperature));
}

}  // namespace

Candidate uncompressed(const Candidate& candidate) {
  Candidate plain = candidate;
  plain.formats.clear();
  plain.pruning.clear();
  plain.recipe["epochs"] = recipe_of(candidate, 0).trainer.epochs + epochs_after(candidate);
  plain.recipe.erase(kEpochsAfter);
  plain.recipe.erase(kOwnWeight);
  return plain;
}

std::optional<TrainedCandidate> train_candidate(const TrialData& data, const Candidate& candidate,
                                                std::uint64_t seed, const Rungs& rungs,
                                                const fs::path& directory, bool keeps,
                                                const engine::ExecutionOptions& execution,
                                                const CandidateCallbacks& callbacks) {
  experiment::FineTuneOptions recipe = recipe_of(candidate, seed);
  const std::int64_t epochs = recipe.trainer.epochs;
  const auto train = [&](const io::Model& model, const Stage& stage, const fs::path& where,
                         bool stays) {
    return train_stage(data, model, recipe, stage, to_json(candidate), rungs, where, stays,
                       execution, callbacks);
  };
  if (!is_compressed_on_the_way(data, candidate))
    return train(build_candidate(data, candidate, seed, execution),
                 {.end = epochs, .total = epochs}, directory, keeps);
  // What was trained before is kept until all is done, for a search that is interrupted: its first
  // stage is over then, and nothing of it is trained again.
  const std::int64_t after = epochs_after(candidate);
  const fs::path before = fs::path(directory) += "-before";
  train::PausedRun paused;
  std::optional<TrainedCandidate> trained =
      train(build_candidate(data, candidate, seed, execution),
            {.end = epochs, .total = epochs + after, .paused = &paused}, before, true);
  if (!trained) return std::nullopt;
  std::unique_ptr<train::ExampleSource> taught;
  if (const double weight = own_weight(data, candidate); weight > 0 && epochs > 0 && after > 0) {
    recipe.graph.distillation.weight = weight;
    taught = taught_by(trained->model, data, recipe.graph.distillation.temperature, execution,
                       callbacks.callbacks);
  }
  compress_candidate(trained->model, candidate, data.calibration(), seed, execution);
  std::optional<TrainedCandidate> result = train(trained->model,
                                                 {.begin = epochs,
                                                  .end = epochs + after,
                                                  .total = epochs + after,
                                                  .after = epochs > 0 ? &paused : nullptr,
                                                  .taught = taught.get()},
                                                 directory, keeps);
  std::error_code ignored;
  fs::remove_all(before, ignored);
  if (result) result->seconds += trained->seconds;
  return result;
}

}  // namespace lathe::search
