#include "lathe/engine/lowered_node.h"

#include "lathe/engine/origin.h"

namespace lathe::engine {

std::optional<Value> add_lowered(Graph& graph, const Backend& backend, const Match& match,
                                 std::string op, std::vector<Value> inputs, Attributes attributes) {
  const NodeId root = match.nodes.front();
  Origin origin;
  for (auto node = match.nodes.rbegin(); node != match.nodes.rend(); ++node) {
    if (const Origin* earlier = graph.find_annotation<Origin>(*node))
      origin.nodes.insert(origin.nodes.end(), earlier->nodes.begin(), earlier->nodes.end());
    else
      origin.nodes.push_back(graph.name(*node));
  }
  const NodeId added = graph.insert_before(root, {.name = graph.name(root) + "/fused",
                                                  .op = std::move(op),
                                                  .inputs = std::move(inputs),
                                                  .attributes = std::move(attributes)});
  if (!backend.can_run(graph, added)) {
    graph.erase(added);
    return std::nullopt;
  }
  graph.annotation<Origin>(added) = std::move(origin);
  return Value{added, 0};
}

void replace_by_lowered(Graph& graph, NodeId from, NodeId to) {
  graph.annotation<Origin>(to).nodes = {graph.name(from)};
  for (std::size_t i = 0; i < graph.types(from).size(); ++i)
    graph.replace_all_uses({from, static_cast<std::int32_t>(i)},
                           {to, static_cast<std::int32_t>(i)});
  graph.erase(from);
}

}  // namespace lathe::engine
