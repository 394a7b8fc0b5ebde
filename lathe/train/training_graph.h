#pragma once

#include <string>
#include <vector>

#include "lathe/core/graph.h"
#include "lathe/io/model.h"
#include "lathe/train/distillation.h"

namespace lathe::train {

enum class OptimizerKind { AdamW, Sgd };
/// The optimizer called `adamw` or `sgd`.
OptimizerKind parse_optimizer(std::string_view name);
std::string_view name(OptimizerKind optimizer);

/// How a model is trained: what for, by which optimizer, and which parameters.
struct TrainingGraphOptions {
  std::string objective = "classify";  ///< one of `objective_names`
  OptimizerKind optimizer = OptimizerKind::AdamW;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, momentum = 0.9;
  double weight_decay = 0.01;            ///< on matrices only, not on biases and norms
  double max_norm = 1.0;                 ///< of the gradient; 0: no clipping
  int accumulation = 1;                  ///< micro-batches of a step
  std::vector<std::string> freeze = {};  ///< patterns (RE2) of parameters to leave as they are
  /// Names of the only parameters to train; empty: all that are not frozen.
  std::vector<std::string> train_only = {};
  /// Parameters that the model has since a change on the way: their moments count steps from there.
  std::vector<std::string> late = {};
  bool dropout = true;
  /// Parameters whose movement is summed while they train: `movement.NAME`, see movement.h.
  std::vector<std::string> movement = {};
  DistillationOptions distillation = {};
  /// How much an example of each class counts; empty: all alike. Not with distillation.
  std::vector<float> class_weights = {};
};

/// The names that states of an optimizer may have, for a parameter.
std::vector<std::string> possible_moments(const std::string& parameter);

struct TrainingGraph {
  Graph graph;
  std::vector<std::string> trained;   ///< names of the parameters it updates
  std::vector<std::string> teachers;  ///< names of states that no step changes: no part of a run
};

/// Adds gradients, optimizer and state updates to the form of the model's graph that sources feed,
/// and the optimizer's own states (zeros) to `state`.
TrainingGraph make_training_graph(const io::Model& model, const TrainingGraphOptions& options,
                                  State& state);

/// The states in which a training graph's optimizer remembers something of a parameter.
std::vector<std::string> moments_of(const Graph& training_graph, const std::string& parameter);

}  // namespace lathe::train
