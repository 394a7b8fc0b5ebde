#include "lathe/engine/parameter_graph.h"

#include <map>
#include <set>

#include "lathe/core/pass.h"

namespace lathe::engine {
namespace {

bool has_constant_types(const Graph& graph, NodeId id) {
  for (const Type& type : graph.types(id))
    for (const Size& size : type.shape)
      if (!size.is_constant()) return false;
  return true;
}

// Other names for the same bytes; not worth a copy of their own.
bool is_alias(const Graph& graph, NodeId id) {
  return graph.is(id, "reshape") || graph.is(id, "identity");
}

// Nodes that can be computed from states, and need one.
std::set<NodeId> find_parameter_nodes(const Graph& graph) {
  std::set<NodeId> found;
  for (const NodeId id : graph.topological_order()) {
    if (graph.op(id).is_source || graph.inputs(id).empty() || is_alias(graph, id) ||
        !has_constant_types(graph, id))
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
  return found;
}

}  // namespace

SplitGraph split_parameters(const Graph& graph) {
  SplitGraph split{{}, graph, {}};
  const std::set<NodeId> moved = find_parameter_nodes(graph);
  if (moved.empty()) return split;

  std::map<Value, Value> copy_of;
  const auto copied = [&](const Value& value) {
    if (value.is_none()) return kNone;
    const auto known = copy_of.find(value);
    if (known != copy_of.end()) return known->second;
    NodeSpec spec{.name = graph.name(value.node), .op = "input", .inputs = {}};
    spec.types = graph.types(value.node);
    if (graph.is(value.node, "constant")) {
      spec.op = "constant";
      spec.attributes = graph.attributes(value.node);
    } else {
      split.sources.push_back(graph.name(value.node));
    }
    return copy_of[value] = Value{split.parameters.add(std::move(spec)), 0};
  };
  for (const NodeId id : graph.topological_order()) {
    if (!moved.contains(id)) continue;
    NodeSpec spec{.name = graph.name(id), .op = graph.op(id).name, .inputs = {}};
    for (const Value& value : graph.inputs(id)) spec.inputs.push_back(copied(value));
    spec.attributes = graph.attributes(id);
    spec.types = graph.types(id);
    const NodeId copy = split.parameters.add(std::move(spec));
    for (std::size_t i = 0; i < graph.types(id).size(); ++i)
      copy_of[{id, static_cast<std::int32_t>(i)}] = {copy, static_cast<std::int32_t>(i)};
  }

  for (const NodeId id : moved) {
    for (std::size_t i = 0; i < graph.types(id).size(); ++i) {
      const Value value{id, static_cast<std::int32_t>(i)};
      bool is_read_outside = false;
      for (const Use& use : graph.uses(id)) {
        if (use.kind == Use::Kind::Operand && moved.contains(use.user)) continue;
        // A use does not say which result it reads; only that operand does.
        is_read_outside = is_read_outside || use.kind != Use::Kind::Operand ||
                          graph.input(use.user, static_cast<std::size_t>(use.operand)) == value;
      }
      if (!is_read_outside) continue;
      const std::string name = graph.name(value);
      split.parameters.set_output(name, copy_of.at(value));
      const NodeId state = split.main.insert_before(
          id,
          {.name = name + "/computed", .op = "state", .inputs = {}, .types = {graph.type(value)}});
      split.main.replace_all_uses(value, {state, 0});
    }
  }
  run_pass("remove-dead-nodes", split.main);
  for (const auto& [name, value] : split.parameters.outputs())
    split.main.rename(split.main.at(name + "/computed"), name);
  verify(split.parameters);
  verify(split.main);
  return split;
}

}  // namespace lathe::engine
