#include "lathe/compress/rounded_parameter.h"

#include "lathe/core/role.h"

namespace lathe::compress {
namespace {

bool is_mask(const Graph& graph, Value value) {
  return !value.is_none() && graph.is(value.node, "state") &&
         state_role(graph, value.node) == StateRole::Mask;
}

}  // namespace

std::optional<std::size_t> masked_operand(const Graph& graph, NodeId node) {
  if (!graph.is(node, "mul")) return std::nullopt;
  for (const std::size_t masked : {0, 1})
    if (is_mask(graph, graph.input(node, 1 - masked))) return masked;
  return std::nullopt;
}

NodeId weight_state(const Graph& graph, Value weight) {
  while (!weight.is_none()) {
    if (graph.is(weight.node, "state"))
      return state_role(graph, weight.node) == StateRole::Parameter &&
                     graph.type(weight).dtype == DType::F32
                 ? weight.node
                 : NodeId{};
    if (graph.is(weight.node, "quantize"))
      weight = graph.input(weight.node, 0);
    else if (const auto masked = masked_operand(graph, weight.node))
      weight = graph.input(weight.node, *masked);
    else
      return {};
  }
  return {};
}

Value before_rounding(const Graph& graph, Value value) {
  while (!value.is_none() && graph.is(value.node, "quantize")) value = graph.input(value.node, 0);
  return value;
}

bool is_read_once(const Graph& graph, NodeId node) {
  return graph.uses(node).size() == 1 && graph.uses(node).front().kind == Use::Kind::Operand;
}

std::optional<RoundedParameter> find_rounded_parameter(const Graph& graph,
                                                       const Quantizer& quantizer) {
  if (!quantizer.is_parameter) return std::nullopt;
  RoundedParameter found{quantizer, {}, {}, std::nullopt};
  Value value = graph.input(quantizer.node, 0);
  const auto follow = [&](std::size_t operand) {
    found.links.insert(found.links.begin(), {value.node, operand});
    value = graph.input(value.node, operand);
  };
  if (value != quantizer.parameter) follow(operand_index(graph, value.node, OperandRole::Table));
  if (const std::optional<std::size_t> operand = masked_operand(graph, value.node)) {
    found.mask = graph.input(value.node, 1 - *operand).node;
    follow(*operand);
  }
  if (!graph.is(value.node, "state") || !is_read_once(graph, value.node)) return std::nullopt;
  for (const ParameterLink& link : found.links)
    if (!is_read_once(graph, link.node)) return std::nullopt;
  found.state = value.node;
  return found;
}

}  // namespace lathe::compress
