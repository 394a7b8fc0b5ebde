#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lathe/experiment/quantize.h"
#include "lathe/experiment/sweep_runner.h"

namespace lathe::experiment {

/// A sweep over number formats: what is rounded how, trained how, and measured on what.
struct SweepOptions {
  std::string formats = {};  ///< `widths`, or a format with its variable: `fixed:{w},{w/2} w=4,6,8`
  SweepSettings settings = {};
  QuantizeOptions quantize = {};  ///< ranges and calibration; formats are the sweep's own
};

/// How the model did in one format.
struct SweepPoint {
  double value = 0;  ///< of the variable
  std::string format;
  int bits = 0;
  std::int64_t epochs = 0;             ///< of training
  double rounded = 0;                  ///< the figure
  std::optional<double> trained = {};  ///< the figure after training
  std::int64_t bytes = 0;              ///< of the files it takes
  std::optional<double> tokens_per_second = {};
};

struct SweepResult {
  std::string variable;
  std::string measured_on;        ///< "5000 rows held out of train", "split test"
  std::int64_t num_measured = 0;  ///< rows that figures are of
  Figure figure;                  ///< what models are compared by
  double plain = 0;               ///< of the float model
  std::int64_t plain_bytes = 0;
  std::optional<double> plain_speed = {};  ///< tokens per second
  std::vector<SweepPoint> points;
};

/// Rounds the model to one format after another, measures it, trains it on, measures it again, and
/// goes on with what was begun (SweepRunner). A format that activations or biases cannot have
/// (`int:4,channel`) is for weights alone, which is said.
SweepResult sweep(const SweepOptions& options, const engine::ExecutionOptions& execution,
                  const Callbacks& callbacks = {});

}  // namespace lathe::experiment
