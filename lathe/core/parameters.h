#pragma once

#include <set>
#include <vector>

#include "lathe/core/graph.h"

namespace lathe {

/// Nodes that states and constants alone decide, and that need a state: what has to be computed
/// when a state changes, not when an input arrives. Other names for the same bytes (reshapes of a
/// state) are among them only where something is computed from them or a layer has them as its
/// weight, values of symbolic size never.
std::set<NodeId> find_parameter_nodes(const Graph& graph);

/// Which values of a graph are parameters: computed from parameters alone, with masks, scales,
/// codes and constants beside them. `w`, `mul(w, mask)`, `quantize(w, s)`, `decode(codes, s)` and
/// `add(w, matmul(b, a))` are.
class Parameters {
 public:
  explicit Parameters(const Graph& graph);
  bool contains(Value value) const;
  /// The states of role parameter or codes that a parameter comes from, in topological order.
  std::vector<NodeId> sources(Value value) const;

 private:
  struct Origin {
    bool is_parameter = false;  ///< nothing else than states of a model and constants has a part
    std::set<NodeId> states;
  };
  std::vector<Origin> origins_;  ///< of each node, by its index
  std::vector<NodeId> order_;    ///< the states
};

}  // namespace lathe
