#include "lathe/report/folded_quantizers.h"

#include "lathe/core/role.h"

namespace lathe::report {
namespace {

bool is_state_of(const Graph& graph, const Value& value, StateRole role) {
  return !value.is_none() && graph.is(value.node, "state") && state_role(graph, value.node) == role;
}

// What stands below the roundings and masks of a parameter.
std::optional<FoldedParameter> parameter_of(const Graph& graph, const Value& value) {
  if (value.is_none()) return std::nullopt;
  const NodeId id = value.node;
  if (is_state_of(graph, value, StateRole::Parameter)) return FoldedParameter{graph.name(id), ""};
  if (graph.is(id, "decode")) {
    FoldedParameter result{graph.name(graph.inputs(id)[0].node),
                           graph.attribute(id).text("format")};
    if (const std::string& of = graph.attribute(id).text("of"); !of.empty()) result.name = of;
    return result;
  }
  if (graph.is(id, "quantize")) {
    std::optional<FoldedParameter> inner = parameter_of(graph, graph.inputs(id)[0]);
    if (inner) inner->format = graph.attribute(id).text("format");
    return inner;
  }
  if (graph.is(id, "mul") && graph.inputs(id).size() == 2)
    for (const std::size_t mask : {0, 1})
      if (is_state_of(graph, graph.inputs(id)[mask], StateRole::Mask)) {
        std::optional<FoldedParameter> inner = parameter_of(graph, graph.inputs(id)[1 - mask]);
        if (inner) inner->is_masked = true;
        return inner;
      }
  return std::nullopt;
}

}  // namespace

std::optional<FoldedParameter> folded_parameter(const Graph& graph, const Value& value) {
  if (value.is_none() || graph.is(value.node, "state")) return std::nullopt;
  // One that is also an output or kept in a state has a box of its own.
  for (const Use& use : graph.uses(value.node))
    if (use.kind != Use::Kind::Operand) return std::nullopt;
  return parameter_of(graph, value);
}

UnroundedValue before_rounding(const Graph& graph, const Value& value) {
  UnroundedValue result{.value = value};
  while (!result.value.is_none() && graph.is(result.value.node, "quantize") &&
         !folded_parameter(graph, result.value)) {
    result.formats.push_back(graph.attribute(result.value.node).text("format"));
    result.value = graph.inputs(result.value.node)[0];
  }
  return result;
}

bool is_folded_quantizer(const Graph& graph, NodeId id) {
  if (folded_parameter(graph, Value{id, 0})) return true;
  if (!graph.is(id, "quantize")) return false;
  for (const Use& use : graph.uses(id))
    if (use.kind == Use::Kind::StateUpdate) return false;
  return true;
}

}  // namespace lathe::report
