#pragma once

#include <filesystem>
#include <string>

#include "lathe/experiment/callbacks.h"
#include "lathe/experiment/fine_tune_options.h"

namespace lathe::experiment {

struct DemonstrationOptions {
  std::string model = {};
  std::string data = "reviews";
  train::TrainerOptions trainer = {};  ///< the recipe of a builder's model; 0 epochs: no training
  std::filesystem::path out = {};      ///< gets index.html, graph.svg and graph.txt
  bool replaces = false;
};

/// What a demonstration tells on its way, besides progress.
struct DemonstrationCallbacks : Callbacks {
  std::function<void(const std::string&)> say = {};  ///< a line for each thing that was seen
};

struct Demonstration {
  double accuracy = 0;
  double tokens_per_second = 0;
  std::filesystem::path page;
};

/// Builds or loads a model, draws it, shows that the executors agree, trains it if it is fresh,
/// runs it, and writes all that as a page.
Demonstration demonstrate(const DemonstrationOptions& options,
                          const engine::ExecutionOptions& execution,
                          const DemonstrationCallbacks& callbacks = {});

}  // namespace lathe::experiment
