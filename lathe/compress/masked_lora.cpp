#include "lathe/compress/masked_lora.h"

#include <algorithm>
#include <array>

#include "lathe/compress/rounded_parameter.h"
#include "lathe/core/role.h"
#include "lathe/ops/channel_matrix.h"
#include "lathe/ops/weight_layout.h"

namespace lathe::compress {
namespace {

bool is_own_parameter(const Graph& graph, NodeId id) {
  return graph.is(id, "state") && state_role(graph, id) == StateRole::Parameter &&
         is_read_once(graph, id);
}

// Weights as [inputs, outputs] get the product transposed.
bool is_transposed(const Graph& graph, NodeId linear) {
  return ops::simplified_axis(2, ops::weight_axis(graph, linear)) != -1;
}

bool reads(const Graph& graph, NodeId reader, NodeId node) {
  const std::vector<Value>& inputs = graph.inputs(reader);
  return std::ranges::find(inputs, Value{node, 0}) != inputs.end();
}

}  // namespace

std::optional<LoraPath> trace_masked_lora(const Graph& graph, NodeId sum, NodeId linear,
                                          NodeId reader) {
  const std::optional<std::size_t> input = find_operand(graph, linear, OperandRole::Input);
  const std::optional<std::size_t> weight = find_operand(graph, linear, OperandRole::Weight);
  if (!input || !weight || graph.op(reader).name != graph.op(linear).name || reader == linear ||
      find_operand(graph, reader, OperandRole::Bias))
    return std::nullopt;
  LoraPath path;
  path.name = graph.name(linear);
  path.linear = linear;
  path.sum = sum;
  path.up = reader;
  const Value read = graph.input(reader, *weight);
  path.masked = before_rounding(graph, read).node;
  path.is_rounded = path.masked != read.node;
  const std::optional<std::size_t> covered = masked_operand(graph, path.masked);
  if (!covered) return std::nullopt;
  path.mask = graph.input(path.masked, 1 - *covered).node;
  path.product = graph.input(path.masked, *covered).node;
  if (!graph.is(path.product, "mul")) return std::nullopt;
  const bool is_turned = graph.is(graph.input(path.product, 0).node, "constant");
  path.factor = graph.input(path.product, is_turned ? 0 : 1).node;
  path.down = graph.input(path.product, is_turned ? 1 : 0).node;
  if (!graph.is(path.factor, "constant") || !graph.is(path.down, "matmul")) return std::nullopt;
  std::array<NodeId, 2> states{graph.input(path.down, 0).node, graph.input(path.down, 1).node};
  if (is_transposed(graph, linear)) std::swap(states[0], states[1]);
  path.b = states[0];
  path.a = states[1];
  if (!is_own_parameter(graph, path.a) || !is_own_parameter(graph, path.b)) return std::nullopt;
  const std::vector<double> factors = graph.attribute(path.factor).reals("values");
  if (factors.size() != 1) return std::nullopt;
  path.scaling = factors[0];
  path.rank = graph.types(path.a)[0].dims({}).at(0);
  const Value x = before_rounding(graph, graph.input(linear, *input));
  const Value fed = before_rounding(graph, graph.input(reader, *input));
  if (fed == x) return path;
  path.dropout = fed.node;
  if (graph.op(fed.node).dropout_attribute.empty() ||
      !graph.op(fed.node).is_identity_in_inference ||
      before_rounding(graph, graph.input(fed.node, 0)) != x)
    return std::nullopt;
  path.dropout_rate = graph.attribute(fed.node).real(graph.op(fed.node).dropout_attribute);
  return path;
}

void cover_lora_path(Graph& graph, const LoraPath& path, NodeId mask) {
  if (path.is_rounded || !reads(graph, path.up, path.down) ||
      !reads(graph, path.product, path.up) || !reads(graph, path.sum, path.product))
    throw UserError(
        fmt::format("linear \"{}\": its LoRA path is rounded, which a mask cannot cover",
                    path.name),
        "fuse LoRA into the float model (lathe lora fuse), prune that, then quantize");
  const std::string& name = path.name;
  const auto insert = [&](NodeSpec spec) {
    return Value{graph.insert_before(path.sum, std::move(spec)), 0};
  };
  const bool is_transposed_weight = is_transposed(graph, path.linear);
  const Value a{path.a, 0}, b{path.b, 0};
  NodeSpec matrix{.name = name + "/lora_BA", .op = "matmul", .inputs = {b, a}};
  if (is_transposed_weight) {
    matrix.inputs = {a, b};
    matrix.attributes = {{"transpose_a", true}, {"transpose_b", true}};
  }
  const Value product = insert(std::move(matrix));
  const Value scaled =
      insert({.name = name + "/lora_BA_scale", .op = "mul", .inputs = {product, {path.factor, 0}}});
  const Value masked =
      insert({.name = name + "/lora_BA_masked", .op = "mul", .inputs = {scaled, {mask, 0}}});
  std::vector<Value> inputs = graph.inputs(path.linear);
  inputs[operand_index(graph, path.linear, OperandRole::Input)] = graph.input(path.down, 0);
  inputs[operand_index(graph, path.linear, OperandRole::Weight)] = masked;
  if (const auto bias = find_operand(graph, path.linear, OperandRole::Bias)) inputs[*bias] = kNone;
  while (inputs.back().is_none()) inputs.pop_back();
  const Value covered = insert({.name = name + "/lora_covered",
                                .op = graph.op(path.linear).name,
                                .inputs = std::move(inputs),
                                .attributes = graph.attributes(path.linear)});
  graph.replace_all_uses({path.product, 0}, covered);
  for (const NodeId id : {path.product, path.up, path.down}) graph.erase(id);
}

}  // namespace lathe::compress
