#include "lathe/core/parameters.h"

#include <algorithm>

#include "lathe/core/role.h"

namespace lathe {
namespace {

bool has_constant_types(const Graph& graph, NodeId id) {
  for (const Type& type : graph.types(id))
    for (const Size& size : type.shape)
      if (!size.is_constant()) return false;
  return true;
}

// Whether a state of this role may have a part in a parameter: what a step of training or a run
// leaves behind may not.
bool can_be_part(StateRole role) {
  return is_of_model(role) && role != StateRole::Buffer;
}

bool is_learned(const Graph& graph, NodeId state) {
  const StateRole role = state_role(graph, state);
  return role == StateRole::Parameter || role == StateRole::Codes;
}

// Whether an alias of parameters is worth computing: something else is computed from it, or a layer
// packs it as its weight. Others read it where the state lies.
bool is_needed_whole(const Graph& graph, NodeId alias, const std::set<NodeId>& found) {
  for (const Use& use : graph.uses(alias)) {
    if (use.kind != Use::Kind::Operand) continue;
    if (found.contains(use.user) ||
        operand_role(graph, use.user, static_cast<std::size_t>(use.operand)) == OperandRole::Weight)
      return true;
  }
  return false;
}

}  // namespace

std::set<NodeId> find_parameter_nodes(const Graph& graph) {
  std::set<NodeId> found;
  const std::vector<NodeId> order = graph.topological_order();
  for (const NodeId id : order) {
    if (graph.op(id).is_source || graph.inputs(id).empty() || !has_constant_types(graph, id))
      continue;
    bool all = true, any = false;
    for (const Value& value : graph.inputs(id)) {
      if (value.is_none()) continue;
      const bool is_parameter = graph.is(value.node, "state") || found.contains(value.node);
      any = any || is_parameter;
      all = all && (is_parameter || graph.is(value.node, "constant"));
    }
    if (all && any) found.insert(id);
  }
  for (auto id = order.rbegin(); id != order.rend(); ++id)
    if (graph.op(*id).is_alias && !is_needed_whole(graph, *id, found)) found.erase(*id);
  return found;
}

Parameters::Parameters(const Graph& graph) : order_(graph.nodes_of("state")) {
  for (const NodeId id : graph.topological_order()) {
    const auto index = static_cast<std::size_t>(id.index);
    if (index >= origins_.size()) origins_.resize(index + 1);
    Origin& origin = origins_[index];
    if (graph.is(id, "state")) {
      origin.is_parameter = can_be_part(state_role(graph, id));
      if (is_learned(graph, id)) origin.states.insert(id);
      continue;
    }
    if (graph.is(id, "constant")) {
      origin.is_parameter = true;
      continue;
    }
    origin.is_parameter = !graph.op(id).is_source && !graph.inputs(id).empty();
    for (const Value& value : graph.inputs(id)) {
      if (value.is_none()) continue;
      const Origin& operand = origins_[static_cast<std::size_t>(value.node.index)];
      origin.is_parameter = origin.is_parameter && operand.is_parameter;
      origin.states.insert(operand.states.begin(), operand.states.end());
    }
  }
}

bool Parameters::contains(Value value) const {
  const auto index = static_cast<std::size_t>(value.node.index);
  return !value.is_none() && index < origins_.size() && origins_[index].is_parameter &&
         !origins_[index].states.empty();
}

std::vector<NodeId> Parameters::sources(Value value) const {
  std::vector<NodeId> result;
  if (!contains(value)) return result;
  const std::set<NodeId>& states = origins_[static_cast<std::size_t>(value.node.index)].states;
  std::copy_if(order_.begin(), order_.end(), std::back_inserter(result),
               [&](NodeId id) { return states.contains(id); });
  return result;
}

}  // namespace lathe
