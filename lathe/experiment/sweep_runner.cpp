#include "lathe/experiment/sweep_runner.h"

#include <algorithm>
#include <charconv>

#include "lathe/compress/packed_weights.h"
#include "lathe/data/validation_split.h"
#include "lathe/experiment/read_data.h"
#include "lathe/experiment/recorded_options.h"
#include "lathe/experiment/side_by_side.h"
#include "lathe/io/atomic_file.h"
#include "lathe/io/json_file.h"
#include "lathe/io/model_size.h"
#include "lathe/io/output_directory.h"
#include "lathe/train/evaluation.h"
#include "lathe/train/make_source.h"
#include "lathe/train/train_model.h"
#include "lathe/train/training_feed.h"

namespace lathe::experiment {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kSweepResults = "results.json";
constexpr const char* kSpeeds = "speeds.json";
constexpr const char* kBytes = "bytes";
constexpr const char* kControl = "control";
constexpr const char* kPoints = "points";

// Everything that decides the results.
json to_json(const SweepSettings& settings, const json& other) {
  json all{
      {"model", recorded_path(settings.model)},
      {"data", recorded_path(settings.data)},
      {"split", settings.split},
      {"validation", settings.validation},
      {"epochs", settings.epochs.size() == 1 ? json(settings.epochs[0]) : json(settings.epochs)},
      {"lr", settings.learning_rate},
      {"batch-size", settings.batch_size},
      {"limit", settings.limit},
      {"images", settings.images},
      {"seed", settings.seed}};
  all.update(other);
  return all;
}

// Files that a model takes, its weights packed.
std::int64_t file_bytes(io::Model model) {
  compress::pack_model(model, false);
  return io::checkpoint_size(model).bytes();
}

// "fixed-8-4" for "fixed:8,4".
std::string directory_name(std::string point) {
  std::ranges::replace_if(
      point, [](char letter) { return letter == ':' || letter == ','; }, '-');
  std::ranges::replace(point, ' ', '-');
  return point;
}

}  // namespace

std::vector<std::int64_t> parse_epochs(const std::string& text) {
  constexpr std::int64_t kMost = 1000;
  const auto number = [&](std::string_view word) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (word.empty() || error != std::errc() || end != word.data() + word.size() || value < 0 ||
        value > kMost)
      fail("epochs {}: expected whole numbers, 0 to {}: 1, 1,2,4 or 1..8", text, kMost);
    return value;
  };
  std::vector<std::int64_t> counts;
  if (const std::size_t dots = text.find(".."); dots != std::string::npos) {
    const std::int64_t last = number(std::string_view(text).substr(dots + 2));
    for (std::int64_t i = number(std::string_view(text).substr(0, dots)); i <= last; ++i)
      counts.push_back(i);
    if (counts.empty()) fail("epochs {}: holds no number; the smaller one comes first", text);
    return counts;
  }
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    counts.push_back(number(std::string_view(text).substr(begin, end - begin)));
    begin = end + 1;
  }
  return counts;
}

std::optional<double> after_epochs(const FigureByEpochs& figures, std::int64_t epochs) {
  const auto found = figures.find(epochs);
  return found == figures.end() ? std::nullopt : std::optional(found->second);
}

void check_sweep(const SweepSettings& settings) {
  if (settings.epochs.empty()) fail("epochs: expected a number of epochs, or several");
  if (settings.out.empty()) fail("sweep: needs out, a directory for its results");
  if (settings.data.empty()) fail("sweep: needs data, to measure and train on");
}

SweepRunner::SweepRunner(const SweepSettings& settings, io::Model model, SweepWords words,
                         const json& other, const engine::ExecutionOptions& execution,
                         const Callbacks& callbacks)
    : settings_(settings),
      model_(std::move(model)),
      words_(std::move(words)),
      execution_(execution),
      callbacks_(callbacks),
      configuration_(to_json(settings, other)) {
  set_images(model_, settings_.images);
  if (!settings_.resumes)
    io::check_output_directory(settings_.out, settings_.replaces, {settings_.model}, "a sweep");
  read_data();  // before the directory is there: what is wrong with data must not leave one
  take_up();
}

void SweepRunner::take_up() {
  std::error_code error;
  if (!settings_.resumes)
    io::clear_output_directory(settings_.out, settings_.replaces, {settings_.model});
  fs::create_directories(settings_.out, error);
  if (error) fail("{}: cannot be created: {}", settings_.out.string(), error.message());
  lock_.emplace(settings_.out);
  if (settings_.resumes && fs::exists(settings_.out / kSweepResults, error)) {
    results_ = io::read_json(settings_.out / kSweepResults);
    check_recorded(configuration_, results_.value("configuration", json::object()), "sweep",
                   settings_.out);
    if (fs::exists(settings_.out / kSpeeds, error))
      speeds_ = io::read_json(settings_.out / kSpeeds);
    return;
  }
  results_ = {{"configuration", configuration_}, {kPoints, json::object()}};
  save();
}

void SweepRunner::save() const {
  if (!speeds_.empty()) io::write_atomically(settings_.out / kSpeeds, speeds_.dump(2) + "\n");
  io::write_atomically(settings_.out / kSweepResults, results_.dump(2) + "\n");
}

// Nothing is chosen on the test split unless asked for: accuracies are of rows that are held out of
// train, always the same ones.
void SweepRunner::read_data() {
  const auto read = [&](const std::string& split) {
    EvaluateOptions reading{.data = settings_.data};
    reading.split = split;
    return read_for(model_, reading, callbacks_.should_stop);
  };
  data::Dataset train = read("train");
  if (train.has_pairs) model_ = train::with_token_types(std::move(model_));
  if (settings_.split.empty()) {
    const auto size = static_cast<std::int64_t>(train.examples.size());
    const data::ValidationSplit split =
        data::split_validation(train.labels(), std::min(settings_.validation, size / 5), 0);
    held_out_ = data::select(train, split.validation);
    train = data::select(train, split.train);
    measured_on_ = fmt::format("{} rows held out of train", held_out_.examples.size());
  } else {
    held_out_ = read(settings_.split);
    measured_on_ =
        fmt::format("{} rows of the split {}", held_out_.examples.size(), settings_.split);
  }
  examples_ = data::take_some(std::move(train), settings_.limit);
  // Tokenized once for all runs.
  measured_ =
      train::make_evaluation_source(model_, held_out_, {}, execution_.pool, callbacks_.should_stop);
  if (std::ranges::max(settings_.epochs) > 0)
    trained_ = train::make_evaluation_source(model_, examples_, {}, execution_.pool,
                                             callbacks_.should_stop);
}

bool SweepRunner::has(const Place& place) const {
  const std::scoped_lock lock(mutex_);
  const json* at = &results_;
  for (const std::string& name : place) {
    if (!at->contains(name)) return false;
    at = &(*at)[name];
  }
  return true;
}

void SweepRunner::keep(const Place& place, const json& value) {
  const std::scoped_lock lock(mutex_);
  json* at = &results_;
  for (const std::string& name : place) at = &(*at)[name];
  if (value.is_object())
    at->update(value);
  else
    *at = value;
  save();
}

// The figure of the only number of epochs is a number, those of several are an object.
SweepRunner::Place SweepRunner::place_of_epochs(Place place, std::int64_t epochs) const {
  if (settings_.epochs.size() > 1) place.push_back(std::to_string(epochs));
  return place;
}

FigureByEpochs SweepRunner::by_epochs(const json& kept) const {
  if (kept.is_number()) return {{settings_.epochs.front(), kept.get<double>()}};
  FigureByEpochs values;
  for (const std::int64_t epochs : settings_.epochs)
    if (const auto found = kept.find(std::to_string(epochs)); found != kept.end())
      values[epochs] = found->get<double>();
  return values;
}

SweepOutcome SweepRunner::run(const std::vector<SweepChange>& changes, bool has_control) {
  std::vector<Job> jobs;
  const auto add = [&](auto job) {
    jobs.emplace_back([job](const engine::ExecutionOptions& execution, const Callbacks& callbacks) {
      job(Run{execution, callbacks});
    });
  };
  if (!has({words_.plain}))
    add([this](const Run& run) {
      keep({words_.plain + "_" + kBytes}, file_bytes(model_));
      keep({words_.plain}, value(model_, words_.plain, run));
    });
  if (has_control)
    add([this](const Run& run) { train_and_measure(model_, kControl, {kControl}, run); });
  for (const SweepChange& change : changes)
    add([this, &change](const Run& run) { measure(change, run); });
  try {
    do_side_by_side(jobs, settings_.jobs, execution_, callbacks_);
  } catch (const UserError& error) {
    throw leave_after(error);
  }

  SweepOutcome outcome{.plain = results_[words_.plain].get<double>(),
                       .plain_bytes = results_.value(words_.plain + "_" + kBytes, std::int64_t{0}),
                       .plain_speed = speed_of(words_.plain),
                       .controls = {},
                       .changed = {}};
  if (has_control) outcome.controls = by_epochs(results_[kControl]);
  for (const SweepChange& change : changes) {
    const json& result = results_[kPoints][change.point];
    SweepFigures& figures = outcome.changed.emplace_back();
    figures.changed = result[words_.changed].get<double>();
    figures.bytes = result.value(kBytes, std::int64_t{0});
    figures.tokens_per_second = speed_of(change.point);
    if (result.contains(words_.trained)) figures.trained = by_epochs(result[words_.trained]);
  }
  return outcome;
}

// What failed before anything was measured leaves nothing that is in the way of another try.
UserError SweepRunner::leave_after(const UserError& error) {
  if (!results_.contains(words_.plain)) {
    lock_.reset();
    std::error_code ignored;
    fs::remove_all(settings_.out, ignored);
    return error;
  }
  return UserError(error.message(), error.hint().empty()
                                        ? "what is measured is kept: `resume` goes on from there"
                                        : error.hint());
}

void SweepRunner::measure(const SweepChange& change, const Run& run) {
  const Place point{kPoints, change.point};
  const auto in_point = [&](const std::string& name) { return Place{kPoints, change.point, name}; };
  const bool lacks_changed = !has(in_point(words_.changed));
  const bool lacks_trained = std::ranges::any_of(settings_.epochs, [&](std::int64_t epochs) {
    return epochs > 0 && !has(place_of_epochs(in_point(words_.trained), epochs));
  });
  if (!lacks_changed && !lacks_trained) return;
  keep(point, change.facts);
  const io::Model changed = change.change(run.execution, run.callbacks);
  if (lacks_changed) {
    keep(in_point(kBytes), file_bytes(changed));
    keep(in_point(words_.changed), value(changed, change.point, run));
  }
  if (lacks_trained) train_and_measure(changed, change.point, in_point(words_.trained), run);
}

// One run for all numbers of epochs: each stops there, is measured, and the next goes on from its
// checkpoint.
void SweepRunner::train_and_measure(const io::Model& model, const std::string& point,
                                    const Place& place, const Run& run) {
  std::vector<std::int64_t> counts = settings_.epochs;
  std::ranges::sort(counts);
  for (const std::int64_t epochs : counts) {
    const Place kept = place_of_epochs(place, epochs);
    if (epochs > 0 && !has(kept))
      keep(kept, value(train(model, point, epochs, run), point + " trained", run));
  }
  std::error_code ignored;
  fs::remove_all(settings_.out / directory_name(point) / "checkpoints", ignored);
}

std::optional<double> SweepRunner::speed_of(const std::string& label) const {
  const std::scoped_lock lock(mutex_);
  const auto found = speeds_.find(label);
  return found == speeds_.end() ? std::nullopt : std::optional(found->get<double>());
}

double SweepRunner::value(const io::Model& model, const std::string& label, const Run& run) {
  train::Classifier classifier(model, {.execution = run.execution});
  const auto measure = [&] {
    return evaluate_source(classifier, model, *measured_, held_out_.targets,
                           {.progress = [&](std::int64_t done, std::int64_t) {
                             return run.callbacks.goes_on({.activity = "testing " + label,
                                                           .unit = "examples",
                                                           .done = done,
                                                           .total = measured_->size()});
                           }});
  };
  const ModelEvaluation measured = measure();
  std::optional<double> speed = tokens_per_second(measured);
  // A few rows are over before buffers are laid out and caches are warm.
  constexpr double kFewTokensSeconds = 0.2;
  constexpr int kPasses = 5;
  if (speed && forward_seconds(measured) < kFewTokensSeconds)
    for (int pass = 1; pass < kPasses; ++pass)
      speed = std::max(speed, tokens_per_second(measure()));
  if (speed) {
    const std::scoped_lock lock(mutex_);
    speeds_[label] = *speed;
  }
  return figures_of(measured).front().value;
}

// One that is interrupted leaves its checkpoint to go on from.
io::Model SweepRunner::train(io::Model model, const std::string& point, std::int64_t epochs,
                             const Run& run) const {
  train::TrainOptions training;
  training.trainer.epochs = training.trainer.cycles = epochs;
  training.graph.objective = train::objective_for("classify", model.labels);
  training.trainer.batch_examples = settings_.batch_size;
  training.trainer.learning_rate = settings_.learning_rate;
  training.trainer.seed = settings_.seed;
  training.source = trained_.get();
  training.execution = run.execution;
  training.keep_checkpoints = 1;
  training.finish = [](io::Model finished) {
    compress::pack_model(finished, false);
    return finished;
  };
  const fs::path path = settings_.out / directory_name(point);
  std::optional<train::RunDirectory> directory = train::RunDirectory::open(path);
  if (directory && directory->checkpoint() && directory->checkpoint()->progress.epoch > epochs) {
    directory.reset();  // it went on before what is asked for was measured
    fs::remove_all(path);
  }
  if (!directory) directory = train::RunDirectory::create(path, configuration_);
  if (directory->checkpoint()) model = directory->checkpoint()->model;
  train::TrainCallbacks training_callbacks;
  training_callbacks.step = [&](const train::StepReport& step) {
    run.callbacks.tell({.activity = "training " + point,
                        .unit = "steps",
                        .done = step.step,
                        .total = step.num_steps,
                        .note = fmt::format("loss {:.4f}", step.loss)});
  };
  training_callbacks.should_stop = run.callbacks.should_stop;
  train::TrainOutcome outcome = train::train_model(std::move(model), examples_, {}, training,
                                                   training_callbacks, &*directory);
  if (outcome.result.ending == train::Ending::Interrupted) throw Interrupted();
  return std::move(outcome.model);
}

}  // namespace lathe::experiment
