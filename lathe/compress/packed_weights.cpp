#include "lathe/compress/packed_weights.h"

#include <algorithm>
#include <optional>

#include "lathe/compress/quantizers.h"
#include "lathe/compress/rounded_parameter.h"
#include "lathe/core/number_format.h"
#include "lathe/core/pass.h"
#include "lathe/core/role.h"
#include "lathe/ops/channel_matrix.h"
#include "lathe/ops/evaluate_parameter.h"
#include "lathe/ops/quantized_operands.h"

namespace lathe::compress {
namespace {

constexpr const char* kCodes = ".codes";
constexpr const char* kLocal = ".local_scales";
constexpr const char* kDecoded = "/quantized";

std::vector<RoundedParameter> find_packable(const Graph& graph) {
  std::vector<RoundedParameter> found;
  for (const Quantizer& quantizer : find_quantizers(graph)) {
    std::optional<RoundedParameter> rounded = find_rounded_parameter(graph, quantizer);
    // The mask stays in the packed graph, after the codes; that must not change a number.
    if (rounded && (!rounded->mask || has_zero(*parse_format(quantizer.format))))
      found.push_back(std::move(*rounded));
  }
  return found;
}

// The parameter of a quantizer as it comes out, in the parameter's shape.
Tensor rounded_value(const Graph& graph, const State& state, const Quantizer& quantizer) {
  const Tensor value = parameter_value(graph, state, quantizer);
  FormatMatrix matrix = format_matrix(graph, state, quantizer.node, value);
  Tensor result(DType::F32, matrix.values.dims());
  matrix.args.y = result.mutable_data<float>().data();
  parse_format(quantizer.format)->quantize(matrix.args);
  return ops::from_matrix(result, value.dims(), graph.attribute(quantizer.node).integer("axis"));
}

Tensor bytes_tensor(const Shape& shape, const std::vector<std::uint8_t>& bytes) {
  return Tensor::from<std::uint8_t>(Type{DType::U8, shape}.dims({}),
                                    std::span<const std::uint8_t>(bytes));
}

Value add_state(Graph& graph, State& state, NodeId before, const std::string& name, StateRole role,
                Tensor value) {
  Type type{value.dtype(), {}};
  for (const std::int64_t size : value.dims()) type.shape.emplace_back(size);
  NodeSpec spec{.name = name, .op = "state", .inputs = {}, .types = {type}};
  if (role != StateRole::Parameter) spec.attributes["role"] = std::string(lathe::name(role));
  const NodeId id = graph.insert_before(before, std::move(spec));
  state[graph.name(id)] = std::move(value);
  return {id, 0};
}

void forget_dead_states(const Graph& graph, State& state) {
  std::erase_if(state, [&](const auto& entry) { return !graph.find(entry.first); });
}

// The parameter that a decode's codes stand for. Graphs written before decode said so named the
// codes after it.
std::string parameter_of(const Graph& graph, NodeId decode) {
  if (const std::string& name = graph.attribute(decode).text("of"); !name.empty()) return name;
  const std::string& codes =
      graph.name(graph.input(decode, operand_index(graph, decode, OperandRole::Codes)).node);
  if (!codes.ends_with(kCodes))
    fail("node \"{}\": says of no parameter that it holds its codes (attribute \"of\")",
         graph.name(decode));
  return codes.substr(0, codes.size() - std::string_view(kCodes).size());
}

// What stands between a decode and the place where its parameter is rounded when it trains: the
// mask where it was masked before, and the lookup that alone reads a table whose rows could as well
// be rounded after it.
std::vector<ParameterLink> links_after(const Graph& graph, NodeId decode) {
  std::vector<ParameterLink> links;
  NodeId last = decode;
  if (graph.attribute(decode).flag("masked")) {
    const NodeId product = is_read_once(graph, decode) ? graph.users(decode).front() : NodeId{};
    const auto operand = product.index < 0 ? std::nullopt : masked_operand(graph, product);
    if (!operand)
      fail("node \"{}\": its numbers were masked, but nothing multiplies them with a mask",
           graph.name(decode));
    links.push_back({product, *operand});
    last = product;
  }
  if (!is_read_once(graph, last)) return links;
  const NodeId reader = graph.users(last).front();
  const std::optional<std::size_t> table = find_operand(graph, reader, OperandRole::Table);
  if (table && graph.input(reader, *table).node == last &&
      commutes_with_lookup(ops::format_of(graph.attribute(decode))->facts()))
    links.push_back({reader, *table});
  return links;
}

// The mask that codes of a format are multiplied with which leaves masked weights out of its
// scales.
Value mask_behind_codes(const Graph& graph, NodeId decode) {
  if (!ops::format_of(graph.attribute(decode))->facts().takes_mask) return kNone;
  for (const NodeId reader : graph.users(decode))
    if (const auto masked = masked_operand(graph, reader)) return graph.input(reader, 1 - *masked);
  return kNone;
}

}  // namespace

std::vector<std::string> packable_parameters(const Graph& graph) {
  std::vector<std::string> names;
  for (const RoundedParameter& rounded : find_packable(graph))
    names.push_back(graph.name(rounded.state));
  return names;
}

int pack_weights(Graph& graph, State& state) {
  int packed = 0;
  for (const RoundedParameter& rounded : find_packable(graph)) {
    const NodeId quantizer = rounded.quantizer.node;
    const std::string name = graph.name(rounded.state);
    const std::shared_ptr<const NumberFormat> format = parse_format(rounded.quantizer.format);
    const Tensor value = parameter_value(graph, state, rounded.quantizer);
    const FormatMatrix matrix = format_matrix(graph, state, quantizer, value);
    const EncodedMatrix encoded = format->encode(matrix.args);

    // Codes take the place of the floats, so that nothing else moves in the graph's text.
    const std::int64_t axis = graph.attribute(quantizer).integer("axis");
    Type codes_type = ops::matrix_type("decode", graph.types(rounded.state)[0], axis);
    codes_type.dtype = DType::U8;
    codes_type.shape.back() = Size(format->code_bytes(matrix.args.columns));
    NodeSpec spec{
        .name = name + kDecoded + "/packed",
        .op = "decode",
        .inputs = {},
        .attributes = {
            {"format", rounded.quantizer.format}, {"columns", matrix.args.columns}, {"of", name}}};
    if (axis >= 0) {
      spec.attributes["axis"] = axis;
      spec.attributes["shape"] = value.dims();
    }
    if (rounded.mask) spec.attributes["masked"] = true;
    spec.inputs.push_back(add_state(graph, state, rounded.state, name + kCodes, StateRole::Codes,
                                    bytes_tensor(codes_type.shape, encoded.codes)));
    spec.inputs.push_back(kNone);
    if (format->scale_bytes(matrix.args.columns) > 0)
      spec.inputs.back() =
          add_state(graph, state, rounded.state, name + kLocal, StateRole::Scale,
                    bytes_tensor(ops::local_scale_shape(*format, codes_type, matrix.args.columns),
                                 encoded.scales));
    for (const OperandRole role : {OperandRole::Scale, OperandRole::Zero})
      if (const auto operand = find_operand(graph, quantizer, role))
        spec.inputs.push_back(graph.input(quantizer, *operand));
    const NodeId first = rounded.links.empty() ? quantizer : rounded.links.front().node;
    const Value decoded{graph.insert_before(first, std::move(spec)), 0};
    if (rounded.links.empty()) {
      graph.replace_all_uses({quantizer, 0}, decoded);
    } else {
      graph.set_input(first, rounded.links.front().operand, decoded);
      graph.replace_all_uses({quantizer, 0}, {rounded.links.back().node, 0});
    }
    run_pass("remove-dead-nodes", graph);
    graph.rename(decoded.node, graph.unique_name(name + kDecoded));
    ++packed;
  }
  forget_dead_states(graph, state);
  verify(graph);
  return packed;
}

int unpack_weights(Graph& graph, State& state, const State& masters) {
  int unpacked = 0;
  for (const NodeId id : graph.nodes_of("decode")) {
    const std::string name = parameter_of(graph, id);
    const auto master = masters.find(name);
    Tensor value =
        master != masters.end() ? master->second : ops::evaluate_parameter(graph, state, {id, 0});
    if (value.dims() != graph.types(id)[0].dims({}) || value.dtype() != DType::F32)
      fail("tensor \"{}\" does not fit its codes: expected {}", name, to_text(graph.types(id)[0]));
    const NodeId codes = graph.input(id, operand_index(graph, id, OperandRole::Codes)).node;
    const Value floats =
        add_state(graph, state, codes, name, StateRole::Parameter, std::move(value));
    NodeSpec spec{.name = graph.name(id) + "/float",
                  .op = "quantize",
                  .inputs = {floats},
                  .attributes = {{"format", graph.attribute(id).text("format")}}};
    if (const std::int64_t axis = graph.attribute(id).integer("axis"); axis >= 0)
      spec.attributes["axis"] = axis;
    for (std::size_t i = 2; i < graph.inputs(id).size(); ++i)
      spec.inputs.push_back(graph.input(id, i));
    while (!spec.inputs.empty() && spec.inputs.back().is_none()) spec.inputs.pop_back();
    const Value mask = mask_behind_codes(graph, id);
    if (!mask.is_none()) {
      spec.inputs.resize(3, kNone);
      spec.inputs.push_back(mask);
    }
    const std::vector<ParameterLink> links = links_after(graph, id);
    std::string label = graph.name(id);
    NodeId rounded;
    if (links.empty()) {
      rounded = graph.insert_before(id, std::move(spec));
      graph.replace_all_uses({id, 0}, {rounded, 0});
    } else {
      // The mask first; and training rounds the rows that a batch looks up, not the table.
      const NodeId last = links.back().node;
      graph.set_input(links.front().node, links.front().operand, floats);
      spec.inputs[0] = {last, 0};
      if (find_operand(graph, last, OperandRole::Table))
        label = graph.unique_name(graph.name(last) + kDecoded);
      rounded = graph.insert_after(last, spec);
      graph.replace_all_uses({last, 0}, {rounded, 0});
      graph.set_input(rounded, 0, {last, 0});
    }
    run_pass("remove-dead-nodes", graph);
    graph.rename(rounded, label);
    ++unpacked;
  }
  forget_dead_states(graph, state);
  verify(graph);
  return unpacked;
}

void pack_model(io::Model& model, bool keeps_masters) {
  if (keeps_masters)
    for (const RoundedParameter& rounded : find_packable(model.graph)) {
      const std::string& name = model.graph.name(rounded.state);
      const Tensor& floats = model.state.at(name);
      // What was unpacked from codes alone and did not train since is what they stand for.
      if (!identical(floats, rounded_value(model.graph, model.state, rounded.quantizer)))
        model.masters[name] = floats;
    }
  pack_weights(model.graph, model.state);
}

void unpack_model(io::Model& model) {
  unpack_weights(model.graph, model.state, model.masters);
  model.masters.clear();
}

void make_float(Graph& graph, State& state) {
  // Where the state has no other reader, it takes the rounded numbers itself.
  for (const RoundedParameter& rounded : find_packable(graph)) {
    state[graph.name(rounded.state)] = rounded_value(graph, state, rounded.quantizer);
    bypass_quantizers(graph, {rounded.quantizer.node});
  }
  // Elsewhere a state of its own has them.
  for (const Quantizer& quantizer : find_quantizers(graph)) {
    if (!quantizer.is_parameter) continue;
    const NodeId source = graph.input(quantizer.node, 0).node;
    const std::string name = graph.name(quantizer.node);
    const Value held = add_state(graph, state, quantizer.parameter.node, name + "/float",
                                 StateRole::Parameter, rounded_value(graph, state, quantizer));
    if (graph.input(quantizer.node, 0) == quantizer.parameter) {
      graph.replace_all_uses({quantizer.node, 0}, held);
    } else {
      if (!is_read_once(graph, source))
        fail("node \"{}\": its rows are read rounded and unrounded, so the model has no float form",
             graph.name(source));
      graph.set_input(source, operand_index(graph, source, OperandRole::Table), held);
      graph.replace_all_uses({quantizer.node, 0}, {source, 0});
    }
    run_pass("remove-dead-nodes", graph);
    const std::string free = graph.unique_name(name);
    state[free] = state.at(graph.name(held.node));
    graph.rename(held.node, free);
  }
  for (const NodeId id : graph.nodes_of("decode"))
    graph.replace_all_uses(
        {id, 0},
        add_state(graph, state, graph.input(id, operand_index(graph, id, OperandRole::Codes)).node,
                  parameter_of(graph, id), StateRole::Parameter,
                  ops::evaluate_parameter(graph, state, {id, 0})));
  std::vector<NodeId> rest;
  for (const Quantizer& quantizer : find_quantizers(graph)) rest.push_back(quantizer.node);
  bypass_quantizers(graph, rest);
  unround_attention(graph);
  forget_dead_states(graph, state);
  verify(graph);
}

}  // namespace lathe::compress
