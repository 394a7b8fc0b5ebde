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
  std::int64_t epochs = 0;             ///< of training
  double pruned = 0;                   ///< the figure
  std::optional<double> trained = {};  ///< the figure after training
  std::int64_t bytes = 0;              ///< of the files it takes
  std::optional<double> tokens_per_second = {};
};

struct PruneSweepResult {
  std::string measured_on;
  std::int64_t num_measured = 0;  ///< rows that figures are of
  Figure figure;                  ///< what models are compared by
  double plain = 0;               ///< of the model as it came
  std::int64_t plain_bytes = 0;
  std::optional<double> plain_speed = {};  ///< tokens per second
  FigureByEpochs controls = {};            ///< the same after training without pruning
  std::vector<PruneSweepPoint> points;
};

/// Prunes the model to one sparsity after another by each method, measures it, trains it on,
/// measures it again, beside a control that is trained alone; goes on with what was begun
/// (SweepRunner). A quantized model stays quantized.
PruneSweepResult prune_sweep(const PruneSweepOptions& options,
                             const engine::ExecutionOptions& execution,
                             const Callbacks& callbacks = {});

/// A row for each sparsity and method: how the model did before and after training, what training
/// won back and what is lost against the control, the size of its files and its speed; first the
/// model without pruning, as it came and as control.
report::Table prune_sweep_table(const PruneSweepResult& result);

/// Writes table.md and sweep.svg, figures against the sparsity, or against the epochs where there
/// are several; both say what was measured on.
void write_prune_report(const PruneSweepResult& result, const std::filesystem::path& directory);

}  // namespace lathe::experiment
