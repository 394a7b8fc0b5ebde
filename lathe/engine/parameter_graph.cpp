#include "lathe/engine/parameter_graph.h"

#include <algorithm>

#include "lathe/core/copy_nodes.h"
#include "lathe/core/parameters.h"
#include "lathe/core/pass.h"
#include "lathe/core/role.h"

namespace lathe::engine {

SplitGraph split_parameters(const Graph& graph, const std::set<NodeId>& kept) {
  SplitGraph split{{}, graph, {}};
  std::set<NodeId> moved = find_parameter_nodes(graph);
  for (const NodeId id : kept) moved.erase(id);
  if (moved.empty()) return split;
  // What stays, and is read by what does not, is computed in both.
  std::set<NodeId> copied = moved;
  for (const NodeId id : kept)
    if (std::ranges::any_of(graph.users(id), [&](NodeId user) { return moved.contains(user); }))
      copied.insert(id);

  NodeCopier copier(graph, split.parameters);
  const auto copy_source = [&](const Value& value) {
    if (value.is_none() || copier.has(value)) return;
    const std::string& name = graph.name(value.node);
    if (graph.is(value.node, "constant")) {
      copier.copy(value.node, name);
      return;
    }
    split.sources.push_back(name);
    copier.map(value,
               {split.parameters.add(
                    {.name = name, .op = "input", .inputs = {}, .types = graph.types(value.node)}),
                0});
  };
  for (const NodeId id : graph.topological_order()) {
    if (!copied.contains(id)) continue;
    for (const Value& value : graph.inputs(id)) copy_source(value);
    copier.copy(id, graph.name(id));
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
      split.parameters.set_output(name, copier.at(value));
      const NodeId state = split.main.insert_before(
          id,
          {.name = name + "/computed", .op = "state", .inputs = {}, .types = {graph.type(value)}});
      split.main.replace_all_uses(value, {state, 0});
    }
  }
  run_pass("remove-dead-nodes", split.main);
  for (const auto& [name, value] : split.parameters.outputs())
    split.main.rename(split.main.at(name + "/computed"), name);
  complete_roles(split.main);
  verify(split.parameters);
  verify(split.main);
  return split;
}

}  // namespace lathe::engine
