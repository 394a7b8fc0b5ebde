#include "lathe/compress/hardware_profile.h"

#include <map>
#include <set>

#include "lathe/core/role.h"
#include "lathe/ops/unary_maps.h"

namespace lathe::compress {
namespace {

// What an op's tensors are: activations or residuals. Layers, which have weights, and lookups are
// known by the roles of their operands.
enum class Kind { Activation, Residual };
using Placement = std::map<TensorRole, Kind>;

std::map<std::string, Placement, std::less<>> placements() {
  std::map<std::string, Placement, std::less<>> result;
  const Placement function{{TensorRole::Inputs, Kind::Activation},
                           {TensorRole::Outputs, Kind::Activation}};
  for (const ops::UnaryMap& map : ops::unary_maps()) result[map.name] = function;
  // A requant stands in front of it or behind it, with the same result: behind it is enough.
  result["relu"] = {{TensorRole::Outputs, Kind::Activation}};
  result.erase("identity");
  result["rrelu"] = function;
  result["add"] = {{TensorRole::Inputs, Kind::Residual}};
  result["layer_norm"] = {{TensorRole::Inputs, Kind::Residual},
                          {TensorRole::Outputs, Kind::Residual}};
  result["softmax"] = {{TensorRole::Inputs, Kind::Residual},
                       {TensorRole::Outputs, Kind::Activation}};
  result["avg_pool2d"] = {{TensorRole::Inputs, Kind::Activation},
                          {TensorRole::Outputs, Kind::Activation}};
  result["max_pool2d"] = {{TensorRole::Inputs, Kind::Activation}};
  return result;
}

}  // namespace

std::vector<QuantizationRule> hardware_rules(const Graph& graph, const HardwareFormats& formats) {
  const auto text = [&](Kind kind) {
    return kind == Kind::Residual ? formats.residuals : formats.activations;
  };
  const std::map<std::string, Placement, std::less<>> known = placements();
  std::set<NodeId> given_out;
  for (const auto& [name, value] : graph.outputs())
    if (graph.type(value).rank() > 0) given_out.insert(value.node);
  std::vector<QuantizationRule> by_name, by_type;
  std::set<std::string> seen;
  for (const NodeId id : graph.topological_order()) {
    QuantizationRule rule{.by = QuantizationRule::By::Type,
                          .match = graph.op(id).name,
                          .formats = {},
                          .place = "profile hardware"};
    if (find_operand(graph, id, OperandRole::Weight)) {
      rule.formats[TensorRole::Weights] = formats.weights;
      rule.formats[TensorRole::Inputs] = formats.activations;
    }
    if (find_operand(graph, id, OperandRole::Table))
      rule.formats[TensorRole::Embeddings] = formats.residuals;
    if (find_operand(graph, id, OperandRole::Query))
      rule.formats[TensorRole::Attention] = formats.activations;
    if (const auto found = known.find(rule.match); found != known.end())
      for (const auto& [role, kind] : found->second) rule.formats[role] = text(kind);
    // Inputs and sums are rounded where they come from, before their elements are moved.
    if (graph.is(id, "reshape")) {
      const NodeId from = graph.input(id, 0).node;
      if (graph.is(from, "input") || find_operand(graph, from, OperandRole::Weight))
        rule.formats[TensorRole::Inputs] = formats.activations;
    }
    const bool is_given_out = given_out.contains(id) && !rule.formats.contains(TensorRole::Outputs);
    if (is_given_out) rule.formats[TensorRole::Outputs] = formats.residuals;
    if (is_given_out || graph.is(id, "reshape")) {
      rule.by = QuantizationRule::By::Name;
      rule.match = graph.name(id);
      if (!rule.formats.empty()) by_name.push_back(rule);
    } else if (!rule.formats.empty() && seen.insert(rule.match).second) {
      by_type.push_back(rule);
    }
  }
  by_name.insert(by_name.end(), by_type.begin(), by_type.end());
  return by_name;
}

}  // namespace lathe::compress
