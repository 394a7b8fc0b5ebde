#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lathe/io/directory_lock.h"
#include "lathe/train/event_file.h"
#include "lathe/train/metrics_log.h"
#include "lathe/train/trainer.h"
#include "lathe/train/training_checkpoint.h"
#include "lathe/train/validation.h"

namespace lathe::train {

/// The directory of a run: `run.json` (how it was started), `metrics.jsonl`, TensorBoard's event
/// files, `checkpoints/`, and at the end the trained model itself, so that the directory is a model
/// directory. One process at a time works in it.
class RunDirectory {
 public:
  /// Starts a run in a directory that does not exist yet.
  static RunDirectory create(std::filesystem::path path, nlohmann::json configuration);
  /// Takes up the run in a directory; nullopt when none was started there.
  static std::optional<RunDirectory> open(std::filesystem::path path);

  /// What the run in a directory was started with, without taking it up; nullopt when none was.
  static std::optional<nlohmann::json> recorded_configuration(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  const nlohmann::json& configuration() const { return configuration_; }
  /// Records that the run goes on with another configuration, where it does: one that was extended.
  void set_configuration(nlohmann::json configuration);
  /// What to go on from; nullopt when the run ended before its first checkpoint.
  const std::optional<TrainingCheckpoint>& checkpoint() const { return checkpoint_; }
  /// A line for each damaged checkpoint that was passed over.
  const std::vector<std::string>& skipped() const { return skipped_; }
  /// The last checkpoint's path; empty when there is none.
  std::string last_checkpoint() const { return last_checkpoint_; }

  /// Opens the logs at the step to go on from, and gives the directory the model's tokenizer, which
  /// checkpoints copy from there.
  void begin(io::Model& model);
  void log(const StepReport& report);
  void log(const Validation& validation);
  void save(const io::Model& model, const State& state, const TrainingProgress& progress,
            int keep_checkpoints);
  /// The model as it was at a step whose checkpoint was kept.
  io::Model read_model(std::int64_t step) const;
  /// Writes the trained model into the directory.
  void finish(const io::Model& model);

 private:
  explicit RunDirectory(std::filesystem::path path) : path_(std::move(path)), lock_(path_) {}

  std::filesystem::path path_;
  io::DirectoryLock lock_;
  nlohmann::json configuration_;
  std::optional<TrainingCheckpoint> checkpoint_;
  std::vector<std::string> skipped_;
  std::string last_checkpoint_;
  std::unique_ptr<MetricsLog> metrics_;
  std::unique_ptr<EventFile> events_;
};

}  // namespace lathe::train
