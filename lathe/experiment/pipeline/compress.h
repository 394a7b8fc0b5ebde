#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lathe/engine/executor.h"
#include "lathe/experiment/callbacks.h"
#include "lathe/experiment/pipeline/pipeline_config.h"
#include "lathe/experiment/pipeline/target.h"

namespace lathe::experiment {

/// A compression: what becomes of which model by which stages.
struct CompressOptions {
  std::string model = {};
  std::string data = {};               ///< empty: nothing is trained, chosen or measured
  std::vector<StageSpec> stages = {};  ///< empty: chosen by the target
  CompressionTarget target = {};
  std::string images = {};  ///< what is done to images, where the model does not say so itself
  std::int64_t limit = 0;   ///< examples to train on; 0: all
  std::int64_t validation = 2000;  ///< rows held out of train to measure on, a fifth at most
  std::uint64_t seed = 0;
  bool is_tested = true;  ///< the result, on the split `test`, where there is one

  io::Storage storage = io::Storage::Compact;  ///< of the result, and what sizes are measured in

  std::filesystem::path out = {};  ///< gets the model, results.json and report.html
  bool resumes = false, replaces = false;
};

/// A model on its way.
struct StageResult {
  std::string stage;       ///< "model" for what the pipeline began with
  std::string summary;     ///< its settings, for people
  std::int64_t bytes = 0;  ///< of all files needed to run it
  double weight_bits = 0;  ///< of the weight files for each parameter: scales, masks and all
  double sparsity = 0;     ///< share of parameters' elements that are zero
  std::int64_t parameters = 0;
  std::optional<double> accuracy = {};           ///< on the rows held out
  std::optional<double> tokens_per_second = {};  ///< of the same
  double seconds = 0;                            ///< the stage took
};

struct CompressResult {
  std::vector<StageResult> stages;
  std::string measured_on;                   ///< "2000 rows held out of train"; empty: nothing was
  std::optional<double> test_accuracy = {};  ///< of the result
  std::optional<double> original_test_accuracy = {};
};

/// Takes a model through its stages, each with a report of what it did. What is done is kept in
/// `out`: a compression that was interrupted goes on with the stage it was in.
CompressResult compress_model(CompressOptions options, const engine::ExecutionOptions& execution,
                              const Callbacks& callbacks = {});

}  // namespace lathe::experiment
