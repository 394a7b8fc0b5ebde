#include "lathe/compress/packed_weights.h"

#include <algorithm>

#include "lathe/compress/quantizers.h"
#include "lathe/core/number_format.h"
#include "lathe/core/pass.h"
#include "lathe/core/role.h"
#include "lathe/ops/quantized_operands.h"
#include "lathe/ops/run_reference.h"

namespace lathe::compress {
namespace {

constexpr const char* kCodes = ".codes";
constexpr const char* kLocal = ".local_scales";
constexpr const char* kDecoded = "/quantized";

// A parameter's quantizer: of the state itself, or of the rows looked up in it.
struct Rounded {
  NodeId quantizer, state, lookup;  // no lookup: -1
};

std::vector<Rounded> find_rounded(const Graph& graph) {
  std::vector<Rounded> found;
  for (const Quantizer& quantizer : find_quantizers(graph)) {
    if (!quantizer.is_parameter) continue;
    Rounded rounded{quantizer.node, graph.at(quantizer.state), {}};
    const NodeId source = graph.input(quantizer.node, 0).node;
    if (source != rounded.state) rounded.lookup = source;
    // Somebody who reads the floats keeps them alive, and codes beside them would save nothing.
    const NodeId reader = rounded.lookup.index < 0 ? rounded.quantizer : rounded.lookup;
    const bool is_alone = graph.uses(rounded.state).size() == 1 &&
                          graph.users(rounded.state).front() == reader &&
                          (rounded.lookup.index < 0 || graph.uses(rounded.lookup).size() == 1);
    if (is_alone) found.push_back(rounded);
  }
  return found;
}

const Tensor& floats_of(const Graph& graph, const State& state, const Rounded& rounded) {
  return rounded.lookup.index < 0 ? *state_operand(graph, state, rounded.quantizer, 0)
                                  : *state_operand(graph, state, rounded.lookup, 1);
}

// The parameter as its format wants it.
QuantizeArgs matrix_of(const Graph& graph, const State& state, const Rounded& rounded) {
  const auto data = [&](std::size_t operand) {
    const Tensor* tensor = state_operand(graph, state, rounded.quantizer, operand);
    return tensor == nullptr ? nullptr : tensor->data<float>().data();
  };
  const Tensor& tensor = floats_of(graph, state, rounded);
  QuantizeArgs args;
  args.columns = tensor.dims().back();
  args.rows = args.columns == 0 ? 0 : tensor.num_elements() / args.columns;
  args.x = tensor.data<float>().data();
  args.scales = data(1);
  args.zeros = data(2);
  return args;
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

// The value of a node that reads states alone.
Tensor evaluate(const Graph& graph, const State& state, NodeId id) {
  std::vector<const Tensor*> operands;
  for (std::size_t i = 0; i < graph.inputs(id).size(); ++i)
    operands.push_back(state_operand(graph, state, id, i));
  return ops::run_reference(graph, id, operands, {})[0];
}

// The parameter that a decode's codes stand for.
std::string parameter_of(const Graph& graph, NodeId decode) {
  const std::string& codes = graph.name(graph.input(decode, 0).node);
  if (!codes.ends_with(kCodes))
    fail("node \"{}\": its codes are called \"{}\", which names no parameter", graph.name(decode),
         codes);
  return codes.substr(0, codes.size() - std::string_view(kCodes).size());
}

// The lookup that alone reads a decoded table whose rows could as well be rounded after it.
NodeId lookup_of(const Graph& graph, NodeId decode) {
  const std::vector<Use>& uses = graph.uses(decode);
  const bool is_lookup = uses.size() == 1 && uses[0].kind == Use::Kind::Operand &&
                         uses[0].operand == 1 && graph.is(uses[0].user, "embedding");
  if (!is_lookup || !commutes_with_lookup(ops::format_of(graph.attribute(decode))->facts()))
    return {};
  return uses[0].user;
}

}  // namespace

std::vector<std::string> packable_parameters(const Graph& graph) {
  std::vector<std::string> names;
  for (const Rounded& rounded : find_rounded(graph)) names.push_back(graph.name(rounded.state));
  return names;
}

int pack_weights(Graph& graph, State& state) {
  int packed = 0;
  for (const Rounded& rounded : find_rounded(graph)) {
    const std::string name = graph.name(rounded.state);
    const std::string text = graph.attribute(rounded.quantizer).text("format");
    const std::shared_ptr<const NumberFormat> format = parse_format(text);
    const QuantizeArgs args = matrix_of(graph, state, rounded);
    const EncodedMatrix encoded = format->encode(args);

    // Codes take the place of the floats, so that nothing else moves in the graph's text.
    Type codes_type{DType::U8, graph.types(rounded.state)[0].shape};
    codes_type.shape.back() = Size(format->code_bytes(args.columns));
    NodeSpec spec{.name = name + kDecoded + "/packed",
                  .op = "decode",
                  .inputs = {},
                  .attributes = {{"format", text}, {"columns", args.columns}}};
    spec.inputs.push_back(add_state(graph, state, rounded.state, name + kCodes, StateRole::Codes,
                                    bytes_tensor(codes_type.shape, encoded.codes)));
    spec.inputs.push_back(kNone);
    if (format->scale_bytes(args.columns) > 0)
      spec.inputs.back() = add_state(
          graph, state, rounded.state, name + kLocal, StateRole::Scale,
          bytes_tensor(ops::local_scale_shape(*format, codes_type, args.columns), encoded.scales));
    for (std::size_t i = 1; i < graph.inputs(rounded.quantizer).size(); ++i)
      spec.inputs.push_back(graph.input(rounded.quantizer, i));
    const NodeId first = rounded.lookup.index < 0 ? rounded.quantizer : rounded.lookup;
    const Value decoded{graph.insert_before(first, std::move(spec)), 0};
    if (rounded.lookup.index >= 0) {
      graph.set_input(rounded.lookup, 1, decoded);
      graph.replace_all_uses({rounded.quantizer, 0}, {rounded.lookup, 0});
    } else {
      graph.replace_all_uses({rounded.quantizer, 0}, decoded);
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
    Tensor value = master != masters.end() ? master->second : evaluate(graph, state, id);
    if (value.dims() != graph.types(id)[0].dims({}) || value.dtype() != DType::F32)
      fail("tensor \"{}\" does not fit its codes: expected {}", name, to_text(graph.types(id)[0]));
    const NodeId codes = graph.input(id, 0).node;
    const Value floats =
        add_state(graph, state, codes, name, StateRole::Parameter, std::move(value));
    NodeSpec spec{.name = graph.name(id) + "/float",
                  .op = "quantize",
                  .inputs = {floats},
                  .attributes = {{"format", graph.attribute(id).text("format")}}};
    for (std::size_t i = 2; i < graph.inputs(id).size(); ++i)
      spec.inputs.push_back(graph.input(id, i));
    while (!spec.inputs.empty() && spec.inputs.back().is_none()) spec.inputs.pop_back();
    const NodeId lookup = lookup_of(graph, id);
    std::string label = graph.name(id);
    NodeId rounded;
    if (lookup.index >= 0) {
      // Training rounds the rows that a batch looks up, not the table.
      graph.set_input(lookup, 1, floats);
      spec.inputs[0] = {lookup, 0};
      label = graph.unique_name(graph.name(lookup) + kDecoded);
      rounded = graph.insert_after(lookup, spec);
      graph.replace_all_uses({lookup, 0}, {rounded, 0});
      graph.set_input(rounded, 0, {lookup, 0});
    } else {
      rounded = graph.insert_before(id, std::move(spec));
      graph.replace_all_uses({id, 0}, {rounded, 0});
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
    for (const std::string& name : packable_parameters(model.graph))
      model.masters[name] = model.state.at(name);
  pack_weights(model.graph, model.state);
}

void unpack_model(io::Model& model) {
  unpack_weights(model.graph, model.state, model.masters);
  model.masters.clear();
}

void make_float(Graph& graph, State& state) {
  for (const Rounded& rounded : find_rounded(graph)) {
    const Tensor& value = floats_of(graph, state, rounded);
    QuantizeArgs args = matrix_of(graph, state, rounded);
    Tensor result(DType::F32, value.dims());
    args.y = result.mutable_data<float>().data();
    ops::format_of(graph.attribute(rounded.quantizer))->quantize(args);
    state[graph.name(rounded.state)] = std::move(result);
  }
  for (const NodeId id : graph.nodes_of("decode"))
    graph.replace_all_uses({id, 0},
                           add_state(graph, state, graph.input(id, 0).node, parameter_of(graph, id),
                                     StateRole::Parameter, evaluate(graph, state, id)));
  std::vector<NodeId> rest;
  for (const Quantizer& quantizer : find_quantizers(graph)) rest.push_back(quantizer.node);
  bypass_quantizers(graph, rest);
  unround_attention(graph);
  forget_dead_states(graph, state);
  verify(graph);
}

}  // namespace lathe::compress
