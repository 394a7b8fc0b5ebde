#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "lathe/core/registry.h"
#include "lathe/data/dataset.h"
#include "lathe/engine/executor.h"
#include "lathe/experiment/callbacks.h"

namespace lathe::experiment {

/// What one stage of a compression is given.
struct StageRun {
  std::string model;            ///< directory of the model that it begins with
  std::string original;         ///< what the pipeline began with, such as a teacher
  std::string data;             ///< empty: none was given
  std::int64_t limit = 0;       ///< examples to train on; 0: all
  std::int64_t validation = 0;  ///< rows held out of train, the same in all stages
  const data::Dataset& train;   ///< without those rows; empty where no data was given
  const data::Dataset& held_out;
  std::uint64_t seed = 0;
  nlohmann::json settings;                    ///< the stage's own, checked
  std::filesystem::path out;                  ///< directory of the model that it writes
  const engine::ExecutionOptions& execution;  ///< with a pool
  const Callbacks& callbacks;
};

/// A kind of stage, registered by its own file.
struct Stage {
  std::string name;
  std::string summary;
  /// Fails on settings that the stage does not know, before any stage has run.
  std::function<void(const nlohmann::json& settings)> check;
  /// Makes the checkpoint `out`. May find there what an interrupted run of the same stage left, but
  /// never a whole checkpoint.
  std::function<void(const StageRun&)> run;
};
using StageRegistry = Registry<Stage>;

/// The kind of that name; fails with the nearest one.
const Stage& find_stage(std::string_view name);

}  // namespace lathe::experiment
