#pragma once

#include <string>
#include <vector>

#include "lathe/core/pass.h"
#include "lathe/engine/executor.h"
#include "lathe/io/model.h"

namespace lathe::experiment {

/// How far a value of one model is from the value of the same name in another, over all data.
struct NodeDifference {
  std::string node;
  std::string op, other_op;
  double largest = 0;    ///< the largest magnitude of a difference
  double relative = 0;   ///< root mean square of the differences over that of the first's values
  double differing = 0;  ///< share of the elements that are not equal
  std::int64_t elements = 0;
};

/// Two models, node by node.
struct Comparison {
  std::vector<NodeDifference> nodes;  ///< in the first model's order
  /// The first node whose values differ at all; empty where none does.
  std::string first;
  /// How many nodes of the first model have no like in the second.
  std::int64_t unmatched = 0;
};

/// Runs two models on the same feeds and compares the values whose nodes have the same name and
/// shape. An integer of an integer model counts as what it is worth; one whose scale no node says
/// is left out. Fails where they have nothing to compare, or an input that the feeds lack.
Comparison compare_models(const io::Model& a, const io::Model& b, const std::vector<Feed>& feeds,
                          const engine::ExecutionOptions& execution);

}  // namespace lathe::experiment
