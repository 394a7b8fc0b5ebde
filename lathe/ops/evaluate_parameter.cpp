#include "lathe/ops/evaluate_parameter.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "lathe/ops/run_reference.h"

namespace lathe::ops {
namespace {

// What `value` needs, operands before readers. Deep chains must not use up the stack, so this
// sweeps the whole order instead of recursing.
std::vector<NodeId> needed_nodes(const Graph& graph, Value value) {
  const std::vector<NodeId> order = graph.topological_order();
  std::set<NodeId> needed{value.node};
  std::vector<NodeId> result;
  for (auto id = order.rbegin(); id != order.rend(); ++id) {
    if (!needed.contains(*id)) continue;
    result.push_back(*id);
    for (const Value& operand : graph.inputs(*id))
      if (!operand.is_none()) needed.insert(operand.node);
  }
  std::reverse(result.begin(), result.end());
  return result;
}

}  // namespace

Tensor evaluate_parameter(const Graph& graph, const State& state, Value value) {
  check(!value.is_none(), "a value to evaluate");
  std::map<Value, Tensor> values;
  for (const NodeId id : needed_nodes(graph, value)) {
    if (graph.is(id, "state")) {
      const auto found = state.find(graph.name(id));
      if (found == state.end()) fail("state \"{}\" has no value", graph.name(id));
      values[{id, 0}] = found->second;
      continue;
    }
    if (graph.op(id).is_source)
      fail("\"{}\" is no parameter: it depends on the {} \"{}\"", graph.name(value),
           graph.op(id).name, graph.name(id));
    std::vector<const Tensor*> operands;
    for (const Value& operand : graph.inputs(id))
      operands.push_back(operand.is_none() ? nullptr : &values.at(operand));
    std::vector<Tensor> results = run_reference(graph, id, operands, {});
    for (std::size_t i = 0; i < results.size(); ++i)
      values[{id, static_cast<std::int32_t>(i)}] = std::move(results[i]);
  }
  return values.at(value);
}

}  // namespace lathe::ops
