#include "lathe/compress/quantizers.h"

#include <algorithm>
#include <array>
#include <optional>

#include "lathe/compress/layers.h"
#include "lathe/compress/rounded_parameter.h"
#include "lathe/core/parameters.h"
#include "lathe/core/pass.h"
#include "lathe/core/role.h"
#include "lathe/ops/channel_matrix.h"
#include "lathe/ops/evaluate_parameter.h"
#include "lathe/ops/quantized_operands.h"

namespace lathe::compress {
namespace {

constexpr std::size_t kMask = 3;  // operand of a quantizer

// The parameter that a value is, or whose rows it is.
Value parameter_behind(const Graph& graph, const Parameters& parameters, Value value) {
  if (parameters.contains(value)) return value;
  const std::optional<std::size_t> table = find_operand(graph, value.node, OperandRole::Table);
  if (table && parameters.contains(graph.input(value.node, *table)))
    return graph.input(value.node, *table);
  return kNone;
}

std::optional<TensorRole> tensor_role(OperandRole role) {
  switch (role) {
    case OperandRole::Query:
    case OperandRole::Key:
    case OperandRole::Content:
      return TensorRole::Attention;
    case OperandRole::Table:
      return TensorRole::Embeddings;
    case OperandRole::Weight:
      return TensorRole::Weights;
    case OperandRole::Bias:
      return TensorRole::Bias;
    case OperandRole::Input:
      return TensorRole::Inputs;
    default:
      return std::nullopt;
  }
}

const Tensor* state_operand(const Graph& graph, const State& state, NodeId node, OperandRole role) {
  const std::optional<std::size_t> index = find_operand(graph, node, role);
  if (!index) return nullptr;
  const NodeId operand = graph.input(node, *index).node;
  const auto found = state.find(graph.name(operand));
  if (!graph.is(operand, "state") || found == state.end())
    fail("node \"{}\": its {} is \"{}\", but must be a state", graph.name(node), name(role),
         graph.name(operand));
  return &found->second;
}

}  // namespace

bool commutes_with_lookup(const FormatFacts& facts) {
  return facts.is_row_local && !(facts.scale_source == ScaleSource::Given &&
                                 facts.granularity != lathe::Granularity::Tensor);
}

bool has_zero(const NumberFormat& format) {
  // Among numbers whose means are none of them, lest a sum of terms be zero by chance.
  constexpr std::array<float, 8> x{1, 0, 0.3f, -2, 0, 0.7f, 0.11f, 0};
  constexpr std::array<float, 8> scales{1, 1, 1, 1, 1, 1, 1, 1}, zeros{};
  std::array<float, 8> y{};
  QuantizeArgs args;
  args.rows = 1;
  args.columns = static_cast<std::int64_t>(x.size());
  args.x = x.data();
  args.y = y.data();
  if (format.facts().scale_source == ScaleSource::Given) args.scales = scales.data();
  if (format.facts().has_zero_point) args.zeros = zeros.data();
  format.quantize(args);
  return y[1] == 0 && y[4] == 0 && y[7] == 0;
}

Value mask_behind(Graph& graph, NodeId quantizer, Value mask) {
  for (const NodeId reader : graph.users(quantizer))
    if (const auto masked = masked_operand(graph, reader);
        masked && graph.input(reader, 1 - *masked) == mask)
      return {reader, 0};
  if (parse_format(graph.attribute(quantizer).text("format"))->facts().takes_mask) {
    std::vector<Value> inputs = graph.inputs(quantizer);
    inputs.resize(kMask + 1, kNone);
    inputs[kMask] = mask;
    graph.set_inputs(quantizer, std::move(inputs));
  }
  return {
      graph.insert_after(quantizer, {.name = graph.unique_name(graph.name(quantizer) + "/masked"),
                                     .op = "mul",
                                     .inputs = {{quantizer, 0}, mask}}),
      0};
}

const Tensor* scale_of(const Graph& graph, const State& state, NodeId quantizer) {
  return state_operand(graph, state, quantizer, OperandRole::Scale);
}
const Tensor* zero_of(const Graph& graph, const State& state, NodeId quantizer) {
  return state_operand(graph, state, quantizer, OperandRole::Zero);
}

FormatMatrix format_matrix(const Graph& graph, const State& state, NodeId quantizer,
                           const Tensor& values) {
  const auto data = [](const Tensor* tensor) {
    return tensor == nullptr ? nullptr : tensor->data<float>().data();
  };
  FormatMatrix matrix;
  matrix.values = ops::to_matrix(values, graph.attribute(quantizer).integer("axis"));
  matrix.args.columns = matrix.values.dims().back();
  matrix.args.rows = matrix.args.columns == 0 ? 0 : values.num_elements() / matrix.args.columns;
  matrix.args.x = matrix.values.data<float>().data();
  if (graph.inputs(quantizer).size() > kMask) {
    const NodeId mask = graph.input(quantizer, kMask).node;
    matrix.mask =
        ops::to_matrix(state.at(graph.name(mask)), graph.attribute(quantizer).integer("axis"));
    matrix.args.mask = matrix.mask.data<float>().data();
  }
  matrix.args.scales = data(scale_of(graph, state, quantizer));
  matrix.args.zeros = data(zero_of(graph, state, quantizer));
  return matrix;
}

std::vector<Quantizer> find_quantizers(const Graph& graph) {
  const Parameters parameters(graph);
  std::vector<Quantizer> found;
  for (const NodeId id : graph.nodes_of("quantize")) {
    Quantizer quantizer;
    const Value rounded = graph.input(id, 0);
    quantizer.node = id;
    quantizer.tensor = graph.name(rounded);
    quantizer.format = graph.attribute(id).text("format");
    quantizer.parameter = parameter_behind(graph, parameters, rounded);
    quantizer.is_parameter = !quantizer.parameter.is_none();
    for (const NodeId source : parameters.sources(quantizer.parameter))
      quantizer.sources.push_back(graph.name(source));
    if (quantizer.is_parameter) quantizer.state = quantizer.sources.front();
    const bool is_lookup = quantizer.is_parameter && quantizer.parameter != rounded;
    quantizer.role = is_lookup                ? TensorRole::Embeddings
                     : quantizer.is_parameter ? TensorRole::Weights
                                              : TensorRole::Outputs;
    bool is_settled = is_lookup;
    for (const Use& use : working_uses(graph, parameters, id)) {
      if (use.kind != Use::Kind::Operand) continue;
      const std::string& layer = graph.name(use.user);
      if (std::ranges::find(quantizer.layers, layer) == quantizer.layers.end())
        quantizer.layers.push_back(layer);
      const std::optional<TensorRole> role =
          tensor_role(operand_role(graph, use.user, static_cast<std::size_t>(use.operand)));
      if (is_settled || !role) continue;
      quantizer.role = *role;
      is_settled = true;
    }
    found.push_back(std::move(quantizer));
  }
  return found;
}

Tensor parameter_value(const Graph& graph, const State& state, const Quantizer& quantizer) {
  return ops::evaluate_parameter(graph, state, quantizer.parameter);
}

std::vector<RoundedAttention> find_rounded_attention(const Graph& graph) {
  std::vector<RoundedAttention> found;
  for (const NodeId id : graph.topological_order()) {
    const auto written = graph.attributes(id).find(kWeightFormat);
    if (written != graph.attributes(id).end() && !std::get<std::string>(written->second).empty())
      found.push_back({id, std::get<std::string>(written->second)});
  }
  return found;
}

void unround_attention(Graph& graph) {
  for (const RoundedAttention& each : find_rounded_attention(graph))
    graph.remove_attribute(each.node, kWeightFormat);
}

bool is_quantized(const Graph& graph) {
  return !graph.nodes_of("quantize").empty() || !graph.nodes_of("decode").empty() ||
         !find_rounded_attention(graph).empty();
}

void bypass_quantizers(Graph& graph, const std::vector<NodeId>& quantizers) {
  for (const NodeId id : quantizers) graph.replace_all_uses({id, 0}, graph.input(id, 0));
  run_pass("remove-dead-nodes", graph);
}

}  // namespace lathe::compress
