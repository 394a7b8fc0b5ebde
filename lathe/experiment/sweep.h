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
  double rounded = 0;                  ///< accuracy
  std::optional<double> trained = {};  ///< accuracy after training
};

struct SweepResult {
  std::string variable;
  std::string measured_on;  ///< "5000 rows held out of train", "split test"
  double plain = 0;         ///< accuracy of the float model
  std::vector<SweepPoint> points;
};

/// Rounds the model to one format after another, measures it, trains it on, measures it again, and
/// goes on with what was begun (SweepRunner).
SweepResult sweep(const SweepOptions& options, const engine::ExecutionOptions& execution,
                  const Callbacks& callbacks = {});

}  // namespace lathe::experiment
