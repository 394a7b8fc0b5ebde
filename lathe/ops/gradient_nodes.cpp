#include "lathe/ops/gradient_nodes.h"

#include <algorithm>

namespace lathe::ops {

Value derive(Graph& graph, NodeId origin, std::string_view role, std::string op,
             std::vector<Value> inputs, Attributes attributes, std::vector<Type> types) {
  return {graph.add({.name = fmt::format("{}/{}", graph.name(origin), role),
                     .op = std::move(op),
                     .inputs = std::move(inputs),
                     .attributes = std::move(attributes),
                     .types = std::move(types)}),
          0};
}

Type operand_type(const Graph& graph, NodeId node, std::size_t index) {
  const Type& type = graph.type(graph.input(node, index));
  return {.dtype = type.dtype, .shape = type.shape};
}

std::string gradient_role(const Graph& graph, NodeId node, std::size_t index) {
  const std::vector<OperandSpec>& operands = graph.op(node).operands;
  return "gradient_" + operands[std::min(index, operands.size() - 1)].name;
}

Value sum_to_operand(Graph& graph, NodeId origin, std::size_t index, Value gradient) {
  const Type type = operand_type(graph, origin, index);
  if (graph.type(gradient).shape == type.shape) return gradient;
  return derive(graph, origin, gradient_role(graph, origin, index), "sum_to", {gradient}, {},
                {type});
}

std::vector<Value> no_gradients(const Graph& graph, NodeId node) {
  return std::vector<Value>(graph.inputs(node).size(), kNone);
}

}  // namespace lathe::ops
