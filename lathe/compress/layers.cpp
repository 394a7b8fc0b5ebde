#include "lathe/compress/layers.h"

#include <algorithm>

#include "lathe/core/role.h"

namespace lathe::compress {

std::vector<Layer> find_layers(const Graph& graph) {
  const Parameters parameters(graph);
  std::vector<Layer> layers;
  for (const NodeId id : graph.topological_order()) {
    const std::optional<std::size_t> input = find_operand(graph, id, OperandRole::Input);
    const std::optional<std::size_t> weight = find_operand(graph, id, OperandRole::Weight);
    if (!input || !weight || parameters.contains({id, 0})) continue;
    if (!parameters.contains(graph.input(id, *weight))) continue;
    layers.push_back({id, *input, *weight, find_operand(graph, id, OperandRole::Bias)});
  }
  return layers;
}

std::set<NodeId> layers_of_parameters(const Graph& graph) {
  const Parameters parameters(graph);
  std::set<NodeId> found;
  for (const NodeId id : graph.topological_order()) {
    if (!parameters.contains({id, 0}) || !find_operand(graph, id, OperandRole::Input) ||
        !find_operand(graph, id, OperandRole::Weight))
      continue;
    // A product that is itself a weight, as LoRA's under a mask, is none.
    const std::vector<Use> uses = working_uses(graph, parameters, id);
    const bool gives_data = std::ranges::all_of(uses, [&](const Use& use) {
      return use.kind == Use::Kind::Operand &&
             operand_role(graph, use.user, static_cast<std::size_t>(use.operand)) ==
                 OperandRole::Other;
    });
    if (!uses.empty() && gives_data) found.insert(id);
  }
  return found;
}

std::vector<Use> working_uses(const Graph& graph, const Parameters& parameters, NodeId id) {
  std::vector<Use> found;
  for (const Use& use : graph.uses(id)) {
    if (use.kind == Use::Kind::Operand && parameters.contains({use.user, 0})) {
      for (Use& later : working_uses(graph, parameters, use.user))
        found.push_back(std::move(later));
    } else {
      found.push_back(use);
    }
  }
  return found;
}

}  // namespace lathe::compress
