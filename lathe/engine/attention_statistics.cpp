#include "lathe/engine/attention_statistics.h"

#include <algorithm>

#include "lathe/engine/lowered_node.h"

namespace lathe::engine {
namespace {

// The attention whose gradient this is: the one of the same operands, all but dout.
std::optional<NodeId> attention_of(const Graph& graph, NodeId gradient) {
  const std::vector<Value>& operands = graph.inputs(gradient);
  for (const NodeId id : graph.nodes_of("attention"))
    if (std::ranges::equal(graph.inputs(id), std::span(operands).subspan(1)) &&
        graph.attributes(id) == graph.attributes(gradient))
      return id;
  return std::nullopt;
}

NodeId first_of(const Graph& graph, NodeId a, NodeId b) {
  for (const NodeId id : graph.topological_order())
    if (id == a || id == b) return id;
  return a;
}

}  // namespace

int share_attention_statistics(Graph& graph, const Backend& backend) {
  int changed = 0;
  for (const NodeId gradient : graph.nodes_of("attention_gradient")) {
    const std::optional<NodeId> attention = attention_of(graph, gradient);
    if (!attention) continue;
    // Whichever comes first, because what both read is there by then.
    const NodeId forward = graph.insert_before(first_of(graph, *attention, gradient),
                                               {.name = graph.name(*attention) + "/shared",
                                                .op = "attention_with_statistics",
                                                .inputs = graph.inputs(*attention),
                                                .attributes = graph.attributes(*attention)});
    std::vector<Value> operands = graph.inputs(gradient);
    operands.insert(operands.begin() + 1, {Value{forward, 0}, Value{forward, 1}});
    const NodeId backward =
        graph.insert_before(gradient, {.name = graph.name(gradient) + "/shared",
                                       .op = "attention_gradient_with_statistics",
                                       .inputs = std::move(operands),
                                       .attributes = graph.attributes(gradient)});
    if (!backend.can_run(graph, forward) || !backend.can_run(graph, backward)) {
      graph.erase(backward);
      graph.erase(forward);
      continue;
    }
    replace_by_lowered(graph, *attention, forward);
    replace_by_lowered(graph, gradient, backward);
    ++changed;
  }
  return changed;
}

}  // namespace lathe::engine
