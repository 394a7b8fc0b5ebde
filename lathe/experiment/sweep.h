#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lathe/experiment/quantize.h"

namespace lathe::experiment {

/// A sweep over number formats: what is rounded how, trained how, and measured on what.
struct SweepOptions {
  std::string model = {};
  std::string formats = {};  ///< `widths`, or a format with its variable: `fixed:{w},{w/2} w=4,6,8`
  std::string data = {};
  std::string split = {};          ///< what accuracies are of; empty: rows held out of train
  std::int64_t validation = 5000;  ///< rows held out, a fifth of train at most
  std::int64_t epochs = 1;         ///< of training after rounding; 0: none
  double learning_rate = 2e-4;
  std::int64_t batch_size = 32;
  std::int64_t limit = 0;         ///< examples to train on; 0: all
  QuantizeOptions quantize = {};  ///< ranges and calibration; formats are the sweep's own
  std::uint64_t seed = 0;

  std::filesystem::path out = {};  ///< gets results.json, table.md and sweep.svg
  bool resumes = false, replaces = false;
};

/// How the model did in one format.
struct SweepPoint {
  double value = 0;  ///< of the variable
  std::string format;
  int bits = 0;
  double rounded = 0;                  ///< accuracy
  std::optional<double> trained = {};  ///< accuracy after training
};

struct SweepResult {
  std::string variable;
  std::string measured_on;  ///< "5000 rows held out of train", "split test"
  double plain = 0;         ///< accuracy of the float model
  std::vector<SweepPoint> points;
};

/// Rounds the model to one format after another, measures it, trains it on, measures it again.
/// What is done is kept in `out`: a sweep that was interrupted goes on where it was, if it is asked
/// for with the same options.
SweepResult sweep(const SweepOptions& options, const engine::ExecutionOptions& execution,
                  const Callbacks& callbacks = {});

}  // namespace lathe::experiment
