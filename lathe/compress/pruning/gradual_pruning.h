#pragma once

#include <string>
#include <vector>

#include "lathe/compress/pruning/gradual_options.h"
#include "lathe/compress/pruning/pruning_plan.h"
#include "lathe/train/train_model.h"

namespace lathe::compress {

/// Prunes a model more and more while it trains.
///
/// The masks are part of the graph from the first step on. What a mask takes out becomes zero in
/// the same step, and so do the optimizer's moments of it: nothing that was pruned pulls later.
class GradualPruning {
 public:
  /// Plans what is pruned and gives the weights masks of ones, where they have none.
  GradualPruning(Graph& graph, State& state, GradualOptions options, std::uint64_t seed);

  /// The parameters whose movement training has to sum (TrainingGraphOptions::movement).
  std::vector<std::string> movement() const;
  /// To be called before every step. A function of the step and of the states alone.
  void before_step(const train::BeforeStep& at) const;
  /// Whether the weights after so many steps have the sparsity that was asked for.
  bool is_done(std::int64_t done, std::int64_t num_steps) const;

 private:
  GradualOptions options_;
  std::uint64_t seed_;
  PruningPlan plan_;
};

}  // namespace lathe::compress
