#include "lathe/core/select_outputs.h"

#include <algorithm>

namespace lathe {

Graph select_outputs(Graph graph, const std::vector<std::string>& names) {
  std::vector<std::string> known;
  for (const auto& [name, value] : graph.outputs()) known.push_back(name);
  for (const std::string& name : names)
    if (!graph.output(name)) throw unknown_name("output", name, known);
  for (const std::string& name : known)
    if (std::find(names.begin(), names.end(), name) == names.end()) graph.remove_output(name);
  graph.clear_state_updates();
  const std::vector<NodeId> order = graph.topological_order();
  for (auto id = order.rbegin(); id != order.rend(); ++id)
    if (graph.uses(*id).empty()) graph.erase(*id);
  return graph;
}

}  // namespace lathe
