#include "lathe/train/run_directory.h"

#include <algorithm>
#include <limits>

#include "lathe/core/error.h"
#include "lathe/io/atomic_file.h"
#include "lathe/io/checkpoint_manifest.h"
#include "lathe/io/copy_tokenizer.h"
#include "lathe/io/json_file.h"
#include "lathe/train/classification_report.h"

namespace lathe::train {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kRunFile = "run.json";
constexpr const char* kRunFormat = "lathe-run";
constexpr const char* kModelAside = ".model.tmp";

void make_directory(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) fail("{}: cannot be created: {}", path.string(), error.message());
}

}  // namespace

RunDirectory RunDirectory::create(fs::path path, json configuration) {
  make_directory(path / "checkpoints");
  RunDirectory run(std::move(path));
  run.configuration_ = configuration.is_null() ? json::object() : std::move(configuration);
  std::error_code error;
  if (fs::exists(run.path_ / kRunFile, error)) fail("{}: holds a run already", run.path_.string());
  const json text = {{"format", kRunFormat}, {"version", 1}, {"configuration", run.configuration_}};
  io::write_atomically(run.path_ / kRunFile, text.dump(2) + "\n");
  return run;
}

void RunDirectory::set_configuration(json configuration) {
  if (configuration == configuration_) return;
  configuration_ = std::move(configuration);
  const json text = {{"format", kRunFormat}, {"version", 1}, {"configuration", configuration_}};
  io::write_atomically(path_ / kRunFile, text.dump(2) + "\n");
}

std::optional<json> RunDirectory::recorded_configuration(const fs::path& path) {
  std::error_code error;
  const fs::path file = path / kRunFile;
  if (!fs::exists(file, error)) return std::nullopt;
  const json text = io::read_json(file);
  if (!text.is_object() || text.value("format", json()) != kRunFormat ||
      text.value("version", json()) != 1 || !text.value("configuration", json()).is_object())
    fail("{}: is not the record of a run that this program can read", file.string());
  return text["configuration"];
}

std::optional<RunDirectory> RunDirectory::open(fs::path path) {
  std::optional<json> configuration = recorded_configuration(path);
  if (!configuration) return std::nullopt;
  RunDirectory run(std::move(path));
  run.configuration_ = std::move(*configuration);
  make_directory(run.path_ / "checkpoints");
  run.checkpoint_ = read_newest_checkpoint(run.path_ / "checkpoints", run.skipped_);
  if (run.checkpoint_) run.last_checkpoint_ = run.checkpoint_->path.string();
  return run;
}

void RunDirectory::begin(io::Model& model) {
  if (model.tokenizer)
    for (const auto& [name, contents] : model.tokenizer->files())
      io::write_atomically(path_ / name, contents);
  else if (!model.directory.empty() && model.directory != path_)
    io::copy_tokenizer(model.directory, path_);
  model.directory = path_;
  const std::int64_t step = checkpoint_ ? checkpoint_->progress.step : 0;
  remove_old_checkpoints(path_ / "checkpoints", std::numeric_limits<int>::max(), 0);
  metrics_ = std::make_unique<MetricsLog>(path_ / "metrics.jsonl", step);
  events_ = std::make_unique<EventFile>(path_, step);
}

void RunDirectory::log(const StepReport& report) {
  const double rate = static_cast<double>(report.tokens) / std::max(1e-9, report.seconds);
  metrics_->write({{"step", report.step},
                   {"epoch", report.epoch},
                   {"loss", report.loss},
                   {"learning_rate", report.learning_rate},
                   {"gradient_norm", report.gradient_norm},
                   {"tokens", report.tokens},
                   {"tokens_per_second", rate}});
  events_->write(report.step, {{"train/loss", report.loss},
                               {"train/learning_rate", report.learning_rate},
                               {"train/gradient_norm", report.gradient_norm},
                               {"train/tokens_per_second", rate}});
}

void RunDirectory::log(const Validation& validation) {
  nlohmann::ordered_json line = {
      {"step", validation.step}, {"epoch", validation.epoch}, {"validation_loss", validation.loss}};
  std::map<std::string, double> scalars{{"validation/loss", validation.loss}};
  if (validation.classes) {
    const double f1 = macro_f1(class_scores(validation.classes->confusion));
    line["validation_accuracy"] = validation.classes->accuracy;
    line["validation_f1"] = f1;
    line["validation_confusion"] = validation.classes->confusion;
    scalars["validation/accuracy"] = validation.classes->accuracy;
    scalars["validation/f1"] = f1;
  }
  if (validation.numbers) {
    for (const auto& [name, value] : {std::pair("pearson", validation.numbers->pearson),
                                      std::pair("spearman", validation.numbers->spearman)}) {
      if (!value) continue;
      line[std::string("validation_") + name] = *value;
      scalars[std::string("validation/") + name] = *value;
    }
  }
  if (validation.sets) {
    line["validation_micro_f1"] = validation.sets->micro_f1;
    line["validation_macro_f1"] = validation.sets->macro_f1;
    scalars["validation/micro_f1"] = validation.sets->micro_f1;
    scalars["validation/macro_f1"] = validation.sets->macro_f1;
  }
  if (validation.words) {
    line["validation_accuracy"] = scalars["validation/accuracy"] = validation.words->accuracy;
    if (validation.words->has_entities)
      line["validation_entity_f1"] = scalars["validation/entity_f1"] =
          validation.words->entities.f1();
  }
  metrics_->write(line);
  events_->write(validation.step, scalars);
}

void RunDirectory::save(const io::Model& model, const State& state,
                        const TrainingProgress& progress, int keep_checkpoints) {
  const fs::path checkpoints = path_ / "checkpoints";
  last_checkpoint_ =
      write_training_checkpoint(checkpoints, model, state, progress, configuration_).string();
  remove_old_checkpoints(checkpoints, keep_checkpoints, progress.best_step);
}

io::Model RunDirectory::read_model(std::int64_t step) const {
  return io::load_model((path_ / "checkpoints" / fmt::format("step-{}", step)).string());
}

void RunDirectory::finish(const io::Model& model) {
  const fs::path aside = path_ / kModelAside;
  std::error_code error;
  fs::remove_all(aside, error);
  io::write_checkpoint(aside, model);
  // The manifest comes last: until it is there the directory does not pass for a whole model, and
  // resuming the finished run writes it again.
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(aside))
    names.push_back(entry.path().filename().string());
  std::partition(names.begin(), names.end(),
                 [](const std::string& name) { return name != io::kManifestName; });
  for (const std::string& name : names) {
    fs::rename(aside / name, path_ / name, error);
    if (error) fail("{}: cannot be written: {}", (path_ / name).string(), error.message());
  }
  fs::remove_all(aside, error);
  io::sync_directory(path_);
}

}  // namespace lathe::train
