#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lathe/io/model.h"
#include "lathe/train/training_progress.h"

namespace lathe::train {

/// A checkpoint read back.
struct TrainingCheckpoint {
  std::filesystem::path path;
  io::Model model;  ///< with the weights of the step
  State state;      ///< the model's and the optimizer's
  TrainingProgress progress;
  nlohmann::json configuration;  ///< of the run, as it was given
};

/// Writes `checkpoints/step-N`: a model directory that any command opens, with the optimizer's
/// states and the progress beside.
///
/// Written aside, synced, renamed: it is there whole or not at all, whenever the power fails. Then
/// `latest` is replaced. `state` holds the model's states and the optimizer's; `model` says what
/// the first are. Returns the checkpoint's path.
std::filesystem::path write_training_checkpoint(const std::filesystem::path& checkpoints,
                                                io::Model model, const State& state,
                                                const TrainingProgress& progress,
                                                const nlohmann::json& configuration);

/// Removes all but the newest `keep` checkpoints (at least 2) and the one of step `keep_step`, and
/// what writers that were killed left behind.
void remove_old_checkpoints(const std::filesystem::path& checkpoints, int keep,
                            std::int64_t keep_step);

/// Reads one checkpoint; fails when a file is missing or differs from its hash.
TrainingCheckpoint read_training_checkpoint(const std::filesystem::path& path);

/// Reads the newest checkpoint that is whole. `skipped` gets a line for each newer one that is not.
/// Nullopt when there is none at all; fails when there are some but none is whole.
std::optional<TrainingCheckpoint> read_newest_checkpoint(const std::filesystem::path& checkpoints,
                                                         std::vector<std::string>& skipped);

}  // namespace lathe::train
