#include "lathe/search/train_candidate.h"

#include <chrono>
#include <cmath>

#include "lathe/compress/packed_weights.h"
#include "lathe/compress/quantize_model.h"
#include "lathe/compress/quantizers.h"
#include "lathe/core/error.h"
#include "lathe/experiment/run_record.h"
#include "lathe/train/evaluation.h"
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
  experiment::set_options(options, candidate.recipe);
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

// Gives layers the candidate's formats. Ranges are those of the least squared error.
void round(io::Model& model, const Candidate& candidate, train::ExampleSource* calibration,
           const engine::ExecutionOptions& execution) {
  compress::QuantizeOptions options;
  for (const auto& [layer, formats] : candidate.formats) {
    compress::RoleFormats rounded;
    for (const auto& [role, format] : formats)
      if (format != "float") rounded[role] = format;
    if (!rounded.empty())
      options.rules.push_back(
          {.by = compress::MatchBy::Name, .match = layer, .formats = std::move(rounded)});
  }
  if (!options.rules.empty()) compress::quantize_model(model, options, calibration, execution);
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
    round(model, candidate, data.calibration(), execution);
    return model;
  }
  Attributes config = base.config;
  for (const auto& [key, value] : candidate.architecture) config[key] = value;
  // Any builder of the family: every key is given.
  io::Model model =
      io::load_model("bert-tiny", {.task = base.task,
                                   .num_labels = static_cast<std::int64_t>(base.label_names.size()),
                                   .config = std::move(config),
                                   .seed = seed});
  model.tokenizer = base.tokenizer;
  model.label_names = base.label_names;
  model.reading = base.reading;
  return model;
}

double measure_accuracy(const io::Model& model, train::ExampleSource& examples,
                        const engine::ExecutionOptions& execution,
                        const experiment::Callbacks& callbacks) {
  train::Classifier classifier(model, {.execution = execution});
  return train::evaluate(
             classifier, examples, static_cast<std::int64_t>(model.label_names.size()),
             {.progress = [&](std::int64_t, std::int64_t) { return !callbacks.stops(); }})
      .accuracy;
}

std::optional<TrainedCandidate> train_candidate(const TrialData& data, const Candidate& candidate,
                                                std::uint64_t seed, const Rungs& rungs,
                                                const fs::path& directory, bool keeps,
                                                const engine::ExecutionOptions& execution,
                                                const CandidateCallbacks& callbacks) {
  const Clock::time_point start = Clock::now();
  const io::Model model = build_candidate(data, candidate, seed, execution);
  const experiment::FineTuneOptions recipe = recipe_of(candidate, seed);
  if (recipe.trainer.epochs == 0) {
    TrainedCandidate result{.model = model};
    result.accuracy = measure_accuracy(model, data.measured(), execution, callbacks.callbacks);
    result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (keeps) {
      std::error_code ignored;
      fs::remove_all(directory, ignored);
      fs::create_directories(directory.parent_path());
      io::write_checkpoint(directory, as_stored(model));
    }
    return result;
  }
  train::TrainOptions options;
  options.finish = as_stored;
  options.trainer = recipe.trainer;
  options.graph = recipe.graph;
  options.source = &data.training();
  options.execution = execution;
  options.keep_checkpoints = 1;
  options.before_step = [&](const train::BeforeStep& now) {
    if (!callbacks.goes_on) return;
    for (int rung = 0; rung + 1 < rungs.count; ++rung) {
      if (rungs.step(rung, now.num_steps) != now.done) continue;
      const double accuracy = measure_accuracy(with_values(model, now.executor.state()),
                                               data.early(), execution, callbacks.callbacks);
      if (!callbacks.goes_on(rungs.resource(rung), accuracy)) throw GivenUp();
    }
  };
  train::TrainCallbacks training;
  training.step = [&](const train::StepReport& step) {
    callbacks.callbacks.tell({.activity = "training",
                              .unit = "steps",
                              .done = step.step,
                              .total = step.num_steps,
                              .note = fmt::format("loss {:.4f}", step.loss)});
  };
  training.should_stop = callbacks.callbacks.should_stop;

  std::optional<train::RunDirectory> run = train::RunDirectory::open(directory);
  if (!run) run = train::RunDirectory::create(directory, {{"search", to_json(candidate)}});
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
    result.accuracy =
        measure_accuracy(result.model, data.measured(), execution, callbacks.callbacks);
    result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (!keeps) {
      leave();
    } else {
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

}  // namespace lathe::search
