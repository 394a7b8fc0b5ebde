#include <algorithm>
#include <cmath>

#include "lathe/core/pass.h"

// Positions as files write them: a range of L, whose embedding is added to that of the ids in every
// row, or that is stretched over the rows before it is embedded. `positions` of the ids is the same
// numbers, and can be packed.
namespace lathe::ops {
namespace {

// Where a range of steps of 1 begins, of shape [L] or [1,L].
std::optional<std::int64_t> first_of_count(const Graph& graph, Value value) {
  const Type& type = graph.type(value);
  if (type.rank() != 1 && (type.rank() != 2 || type.shape[0] != Size(1))) return std::nullopt;
  if (graph.is(value.node, "reshape")) value = graph.input(value.node, 0);
  if (!graph.is(value.node, "range")) return std::nullopt;
  const AttributeReader attributes = graph.attribute(value.node);
  const double first = attributes.real("first");
  if (attributes.real("step") != 1.0 || first < 0 || first != std::floor(first) || first > 1e9)
    return std::nullopt;
  return static_cast<std::int64_t>(first);
}

// An input [B,L] whose second axis is the range's, and the first one `rows`, where there are such.
std::optional<NodeId> find_ids(const Graph& graph, const Type& counted, const Size* rows) {
  for (const NodeId id : graph.nodes_of("input")) {
    const Type& type = graph.types(id)[0];
    if (type.rank() == 2 && !is_floating(type.dtype) && type.shape[1] == counted.axis(-1) &&
        (rows == nullptr || type.shape[0] == *rows))
      return id;
  }
  return std::nullopt;
}

// Whether everybody stretches what was looked up for [L] or [1,L] over the rows of the ids.
bool is_added_to_rows(const Graph& graph, NodeId looked_up, const Size& rows) {
  return !graph.uses(looked_up).empty() &&
         std::ranges::all_of(graph.uses(looked_up), [&](const Use& use) {
           return use.kind == Use::Kind::Operand && graph.is(use.user, "add") &&
                  graph.types(use.user)[0].rank() == 3 && graph.types(use.user)[0].shape[0] == rows;
         });
}

// The positions of ids, named after who reads them.
NodeId add_positions(Graph& graph, NodeId reader, NodeId ids, std::int64_t first) {
  Attributes attributes;
  if (first != 0) attributes["first"] = first;
  return graph.insert_before(reader, {.name = graph.name(reader) + "/positions",
                                      .op = "positions",
                                      .inputs = {{ids, 0}},
                                      .attributes = std::move(attributes)});
}

// A range that is stretched over the rows of ids, for who takes whole numbers of any size.
bool recognize_stretched(Graph& graph, NodeId id) {
  const Type& type = graph.types(id)[0];
  const Value count = graph.input(id, 0);
  const std::optional<std::int64_t> first = first_of_count(graph, count);
  // One number for a whole row is no count of it.
  if (!first || type.rank() != 2 || graph.type(count).axis(-1) != type.axis(-1)) return false;
  const std::optional<NodeId> ids = find_ids(graph, type, &type.shape[0]);
  const bool takes_any = std::ranges::all_of(graph.uses(id), [&](const Use& use) {
    return use.kind == Use::Kind::Operand &&
           (graph.is(use.user, "embedding") || graph.is(use.user, "cast"));
  });
  if (!ids || !takes_any) return false;
  const NodeId positions = add_positions(graph, id, *ids, *first);
  const std::string name = graph.name(id);
  graph.replace_all_uses({id, 0}, {positions, 0});
  graph.erase(id);
  graph.rename(positions, name);
  return true;
}

// One that is embedded first.
bool recognize_embedded(Graph& graph, NodeId id) {
  const Type counted = graph.type(graph.input(id, 0));
  const std::optional<std::int64_t> first = first_of_count(graph, graph.input(id, 0));
  if (!first) return false;
  const std::optional<NodeId> ids = find_ids(graph, counted, nullptr);
  if (!ids || !is_added_to_rows(graph, id, graph.types(*ids)[0].shape[0])) return false;
  const NodeId positions = add_positions(graph, id, *ids, *first);
  const std::string name = graph.name(id);
  const NodeId looked_up =
      graph.insert_before(id, {.name = name + "/of_ids",
                               .op = "embedding",
                               .inputs = {{positions, 0}, graph.input(id, 1)}});
  graph.replace_all_uses({id, 0}, {looked_up, 0});
  graph.erase(id);
  graph.rename(looked_up, name);
  return true;
}

int recognize_positions(Graph& graph) {
  int changed = 0;
  for (const NodeId id : graph.topological_order())
    if (graph.is(id, "broadcast_to"))
      changed += recognize_stretched(graph, id);
    else if (graph.is(id, "embedding"))
      changed += recognize_embedded(graph, id);
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
