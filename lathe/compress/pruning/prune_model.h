#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lathe/compress/pruning/pruning_plan.h"
#include "lathe/compress/pruning/pruning_report.h"
#include "lathe/engine/executor.h"
#include "lathe/io/model.h"
#include "lathe/train/example_source.h"

namespace lathe::compress {

/// How a model is pruned in one shot.
struct PruneOptions {
  PruningRequest request = {};
  /// Examples that layers are measured on. Rows that are looked up are counted in all there are.
  std::int64_t calibration_examples = 256;
  std::uint64_t seed = 0;
};

struct PruneResult {
  std::vector<PruningGroup> groups;
  std::vector<UnitReport> units;
  int activations = 0;            ///< layers whose inputs are pruned in every run
  std::vector<std::string> left;  ///< weights and tables that did not count
  std::vector<std::string> unused_rules;
};

/// Chooses what goes by the rules, sets it to zero and keeps it there by masks in the graph.
/// Weights must be floats: a packed model is to be unpacked first.
///
/// `calibration` may be null where no method looks at data; fails otherwise. Fails on a weight that
/// holds a number that is not finite. What was pruned before stays out and counts.
PruneResult prune_model(io::Model& model, const PruneOptions& options,
                        train::ExampleSource* calibration,
                        const engine::ExecutionOptions& execution,
                        const std::function<bool(std::int64_t)>& progress = {});

/// The values of every state that the units have parts of: with LoRA's paths added, and 0 where a
/// mask takes them out.
State weight_values(const Graph& graph, const State& state, std::span<const PruningUnit> units);

}  // namespace lathe::compress
