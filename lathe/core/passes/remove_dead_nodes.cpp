#include "lathe/core/pass.h"

namespace lathe {
namespace {

// From the last node to the first, so that a chain goes in one walk. Inputs stay, because they are
// the graph's signature; states that nobody reads go, and their values with them.
int remove_dead_nodes(Graph& graph) {
  int removed = 0;
  const std::vector<NodeId> order = graph.topological_order();
  for (auto id = order.rbegin(); id != order.rend(); ++id) {
    if (!graph.uses(*id).empty() || graph.is(*id, "input")) continue;
    if (graph.state_updates().contains(*id)) continue;
    graph.erase(*id);
    ++removed;
  }
  return removed;
}

const Register remove_dead_nodes_pass{Pass{
    .name = "remove-dead-nodes",
    .summary = "erase every node that no output and no state update depends on",
    .run = remove_dead_nodes,
    .keeps = {"origin", "profile", "statistics"},
}};

}  // namespace
}  // namespace lathe
