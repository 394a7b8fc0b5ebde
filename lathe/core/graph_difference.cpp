#include "lathe/core/graph_difference.h"

#include "lathe/core/graph_text.h"

namespace lathe {
namespace {

std::string output_text(const Graph& graph, std::string_view name) {
  const std::optional<Value> value = graph.output(name);
  return value ? fmt::format("\"{}\"", graph.name(*value)) : "nothing";
}

std::string update_text(const Graph& graph, std::string_view state) {
  const auto update = graph.state_updates().find(graph.at(state));
  return update == graph.state_updates().end() ? "nothing"
                                               : fmt::format("\"{}\"", graph.name(update->second));
}

}  // namespace

std::optional<std::string> describe_difference(const Graph& a, const Graph& b) {
  for (const NodeId id : a.topological_order())
    if (!b.find(a.name(id)))
      return fmt::format("node \"{}\" ({}) was added", a.name(id), a.op(id).name);
  for (const NodeId id : b.topological_order())
    if (!a.find(b.name(id)))
      return fmt::format("node \"{}\" ({}) was removed", b.name(id), b.op(id).name);
  for (const NodeId id : a.topological_order()) {
    const std::string there = print(a, id), expected = print(b, a.name(id));
    if (there != expected) return fmt::format("\"{}\" instead of \"{}\"", there, expected);
  }
  for (const Graph* one : {&a, &b})
    for (const auto& [name, value] : one->outputs())
      if (output_text(a, name) != output_text(b, name))
        return fmt::format("output \"{}\" is {} instead of {}", name, output_text(a, name),
                           output_text(b, name));
  for (const Graph* one : {&a, &b})
    for (const auto& [state, value] : one->state_updates())
      if (update_text(a, one->name(state)) != update_text(b, one->name(state)))
        return fmt::format("state \"{}\" takes {} instead of {}", one->name(state),
                           update_text(a, one->name(state)), update_text(b, one->name(state)));
  return std::nullopt;
}

}  // namespace lathe
