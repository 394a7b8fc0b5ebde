#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lathe/experiment/prune.h"
#include "lathe/experiment/sweep_runner.h"
#include "lathe/report/table.h"

namespace lathe::experiment {

/// A sweep over sparsities: what is pruned how, trained how, and measured on what.
struct PruneSweepOptions {
  std::string sparsities = {};  ///< `0.1..0.9`, in steps of 0.1, or a list: `0.5,0.7,0.95`
  std::vector<std::string> methods = {"random", "l1"};
  SweepSettings settings = {.learning_rate = 5e-5};
  PruneOptions prune = {};  ///< all but method and sparsity
};

/// The sparsities of a text, each between 0 and 1.
std::vector<double> parse_sparsities(const std::string& text);

/// How the model did at one sparsity by one method.
struct PruneSweepPoint {
  std::string method;
  double sparsity = 0;
  double pruned = 0;                   ///< accuracy
  std::optional<double> trained = {};  ///< accuracy after training
};

struct PruneSweepResult {
  std::string measured_on;
  double plain = 0;                    ///< accuracy of the model as it came
  std::optional<double> control = {};  ///< the same after training without pruning
  std::vector<PruneSweepPoint> points;
};

/// Prunes the model to one sparsity after another by each method, measures it, trains it on,
/// measures it again, beside a control that is trained alone; goes on with what was begun
/// (SweepRunner). A quantized model stays quantized.
PruneSweepResult prune_sweep(const PruneSweepOptions& options,
                             const engine::ExecutionOptions& execution,
                             const Callbacks& callbacks = {});

/// A row for each sparsity, with the accuracy by every method before and after training; first the
/// model without pruning, as it came and as control.
report::Table prune_sweep_table(const PruneSweepResult& result);

/// Writes table.md and sweep.svg; both say what was measured on.
void write_prune_report(const PruneSweepResult& result, const std::filesystem::path& directory);

}  // namespace lathe::experiment
