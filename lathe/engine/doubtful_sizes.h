#pragma once

#include <utility>
#include <vector>

#include "lathe/core/graph.h"

namespace lathe::engine {

/// The sizes of a plan that are negative for some symbols. An arena is laid out for the largest
/// sizes seen, so a size must be largest there, and never negative.
class DoubtfulSizes {
 public:
  /// Looks at a node's results: fails for what no symbols make right, and keeps what some do not.
  void add(const Graph& graph, NodeId id);
  /// Fails where a size that was kept is negative for these symbols.
  void check(const Graph& graph, const SymbolValues& symbols) const;

 private:
  std::vector<std::pair<NodeId, Size>> sizes_;
};

}  // namespace lathe::engine
