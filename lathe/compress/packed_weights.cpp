#include "lathe/compress/packed_weights.h"

#include <algorithm>

#include "lathe/compress/quantizers.h"
#include "lathe/core/number_format.h"
#include "lathe/core/pass.h"
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

QuantizeArgs matrix_of(const Tensor& tensor) {
  QuantizeArgs args;
  args.columns = tensor.dims().back();
  args.rows = args.columns == 0 ? 0 : tensor.num_elements() / args.columns;
  args.x = tensor.data<float>().data();
  return args;
}

const float* floats_of(const Graph& graph, const State& state, NodeId node, std::size_t operand) {
  if (operand >= graph.inputs(node).size() || graph.inputs(node)[operand].is_none()) return nullptr;
  return state.find(graph.name(graph.input(node, operand).node))->second.data<float>().data();
}

Tensor bytes_tensor(std::vector<std::int64_t> dims, std::int64_t last,
                    const std::vector<std::uint8_t>& bytes) {
  dims.back() = last;
  return Tensor::from<std::uint8_t>(std::move(dims), std::span<const std::uint8_t>(bytes));
}

Value add_state(Graph& graph, State& state, NodeId before, const std::string& name, Tensor value) {
  Type type{value.dtype(), {}, {}};
  for (const std::int64_t size : value.dims()) type.shape.emplace_back(size);
  const NodeId id =
      graph.insert_before(before, {.name = name, .op = "state", .inputs = {}, .types = {type}});
  state[graph.name(id)] = std::move(value);
  return {id, 0};
}

void forget_dead_states(const Graph& graph, State& state) {
  std::erase_if(state, [&](const auto& entry) { return !graph.find(entry.first); });
}

// The value of a node that depends on states alone.
Tensor evaluate(const Graph& graph, const State& state, NodeId id) {
  std::vector<const Tensor*> operands;
  for (const Value& value : graph.inputs(id))
    operands.push_back(value.is_none() ? nullptr : &state.find(graph.name(value.node))->second);
  return ops::run_reference(graph, id, operands, {})[0];
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
    const Tensor& value = state.find(name)->second;
    const std::string text = graph.attribute(rounded.quantizer).text("format");
    const std::shared_ptr<const NumberFormat> format = parse_format(text);
    QuantizeArgs args = matrix_of(value);
    args.scales = floats_of(graph, state, rounded.quantizer, 1);
    args.zeros = floats_of(graph, state, rounded.quantizer, 2);
    const EncodedMatrix encoded = format->encode(args);

    const NodeId first = rounded.lookup.index < 0 ? rounded.quantizer : rounded.lookup;
    NodeSpec spec{.name = name + kDecoded + "/packed",
                  .op = "decode",
                  .inputs = {},
                  .attributes = {{"format", text}, {"columns", args.columns}}};
    spec.inputs.push_back(
        add_state(graph, state, first, name + kCodes,
                  bytes_tensor(value.dims(), format->code_bytes(args.columns), encoded.codes)));
    const std::int64_t local = format->scale_bytes(args.columns);
    spec.inputs.push_back(local == 0
                              ? kNone
                              : add_state(graph, state, first, name + kLocal,
                                          bytes_tensor(value.dims(), local, encoded.scales)));
    for (std::size_t i = 1; i < graph.inputs(rounded.quantizer).size(); ++i)
      spec.inputs.push_back(graph.input(rounded.quantizer, i));
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
    const std::string codes = graph.name(graph.input(id, 0).node);
    if (!codes.ends_with(kCodes))
      fail("node \"{}\": its codes are called \"{}\", which names no parameter", graph.name(id),
           codes);
    const std::string name = codes.substr(0, codes.size() - std::string_view(kCodes).size());
    const auto master = masters.find(name);
    Tensor value = master != masters.end() ? master->second : evaluate(graph, state, id);
    if (value.dims() != graph.types(id)[0].dims({}) || value.dtype() != DType::F32)
      fail("tensor \"{}\" does not fit its codes: expected {}", name, to_text(graph.types(id)[0]));
    NodeSpec spec{.name = graph.name(id) + "/float",
                  .op = "quantize",
                  .inputs = {add_state(graph, state, id, name, std::move(value))},
                  .attributes = {{"format", graph.attribute(id).text("format")}}};
    for (std::size_t i = 2; i < graph.inputs(id).size(); ++i)
      spec.inputs.push_back(graph.input(id, i));
    while (!spec.inputs.empty() && spec.inputs.back().is_none()) spec.inputs.pop_back();
    const std::string label = graph.name(id);
    const NodeId rounded = graph.insert_before(id, std::move(spec));
    graph.replace_all_uses({id, 0}, {rounded, 0});
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
  pack_weights(graph, state);
  for (const NodeId id : graph.nodes_of("decode")) {
    const std::string codes = graph.name(graph.input(id, 0).node);
    const std::string name = codes.substr(0, codes.size() - std::string_view(kCodes).size());
    const Value value = add_state(graph, state, id, name, evaluate(graph, state, id));
    graph.replace_all_uses({id, 0}, value);
  }
  std::vector<NodeId> rest;
  for (const Quantizer& quantizer : find_quantizers(graph)) rest.push_back(quantizer.node);
  bypass_quantizers(graph, rest);
  forget_dead_states(graph, state);
  verify(graph);
}

}  // namespace lathe::compress
