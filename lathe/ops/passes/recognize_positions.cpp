#include "lathe/core/pass.h"

// Positions as other programs write them: a range of L, the same for every row, whose embedding is
// added to that of the ids. `positions` of the ids is the same numbers, and can be packed.
namespace lathe::ops {
namespace {

// A range 0, 1, .. of shape [L] or [1,L].
bool is_count(const Graph& graph, Value value) {
  if (graph.is(value.node, "reshape")) value = graph.input(value.node, 0);
  return graph.is(value.node, "range") && graph.attribute(value.node).real("first") == 0.0 &&
         graph.attribute(value.node).real("step") == 1.0;
}

// An input [B,L] whose second axis is the range's.
std::optional<NodeId> find_ids(const Graph& graph, const Type& counted) {
  for (const NodeId id : graph.nodes_of("input")) {
    const Type& type = graph.types(id)[0];
    if (type.rank() == 2 && !is_floating(type.dtype) && type.shape[1] == counted.axis(-1))
      return id;
  }
  return std::nullopt;
}

int recognize_positions(Graph& graph) {
  int changed = 0;
  for (const NodeId id : graph.topological_order()) {
    if (!graph.is(id, "embedding") || !is_count(graph, graph.input(id, 0))) continue;
    const Type counted = graph.type(graph.input(id, 0));
    if (counted.rank() > 2 || (counted.rank() == 2 && counted.shape[0] != Size(1))) continue;
    const std::optional<NodeId> ids = find_ids(graph, counted);
    if (!ids) continue;
    // Every reader must stretch it over the rows anyway.
    bool is_added = !graph.uses(id).empty();
    for (const Use& use : graph.uses(id))
      is_added = is_added && use.kind == Use::Kind::Operand && graph.is(use.user, "add") &&
                 graph.types(use.user)[0].rank() == 3 &&
                 graph.types(use.user)[0].shape[0] == graph.types(*ids)[0].shape[0];
    if (!is_added) continue;
    const NodeId positions = graph.insert_before(
        id, {.name = graph.name(id) + "/positions", .op = "positions", .inputs = {{*ids, 0}}});
    const std::string name = graph.name(id);
    const NodeId looked_up =
        graph.insert_before(id, {.name = name + "/of_ids",
                                 .op = "embedding",
                                 .inputs = {{positions, 0}, graph.input(id, 1)}});
    graph.replace_all_uses({id, 0}, {looked_up, 0});
    graph.erase(id);
    graph.rename(looked_up, name);
    ++changed;
  }
  if (changed > 0) run_pass("remove-dead-nodes", graph);
  return changed;
}

const Register recognize_positions_pass{Pass{
    .name = "recognize-positions",
    .summary = "make positions of a range that is embedded and added to every row",
    .run = recognize_positions,
}};

}  // namespace
}  // namespace lathe::ops
