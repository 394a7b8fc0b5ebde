#pragma once

#include "lathe/compress/pruning/method.h"
#include "lathe/compress/pruning/pruning_rules.h"

namespace lathe::compress {

/// Which weights of a model are pruned how.
struct PruningRequest {
  std::vector<PruningRule> rules = {};
  PruningSettings settings = {};  ///< where no rule matches, and what a rule leaves open
  /// Tables count like weights of layers. Otherwise only those that a rule names by type, name or
  /// pattern, and those of granularity vocabulary.
  bool embeddings = false;
};

/// Weights that are pruned the same way; under a global scope, one ranking.
struct PruningGroup {
  std::string place;  ///< of the rule; empty: no rule's
  std::string method;
  Granularity granularity;
  PruningScope scope = PruningScope::Local;
  /// Nothing where the method finds it: rows that are never looked up.
  std::optional<double> sparsity;
  std::vector<PruningUnit> units;
};

struct PruningPlan {
  std::vector<PruningGroup> groups;
  std::vector<std::pair<NodeId, double>> activations;  ///< layers whose inputs are pruned
  std::vector<std::string> unused;                     ///< rules that match no layer
};

/// Sorts the weights of a graph by the rules; heads and neurons count where all their weights fall
/// under one. Fails where nothing is left to prune, and where a method and a granularity do not
/// fit.
PruningPlan plan_pruning(const Graph& graph, const PruningRequest& request);

}  // namespace lathe::compress
