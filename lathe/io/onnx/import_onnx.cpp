#include "lathe/io/onnx/import_onnx.h"

#include <algorithm>
#include <set>

#include "lathe/core/quote_text.h"
#include "lathe/io/family_weights.h"
#include "lathe/io/onnx/constant_nodes.h"
#include "lathe/io/onnx/onnx_op.h"
#include "lathe/io/onnx/signature.h"
#include "lathe/ops/axes.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/run_reference.h"

namespace lathe::io::onnx {
namespace {

// More is no constant but a mistake, or somebody's who wants our memory.
constexpr std::int64_t kMostFolded = std::int64_t{1} << 28;

std::string full_name(const OnnxNode& node) {
  return node.domain.empty() ? node.op : node.domain + "::" + node.op;
}

std::string place_of(const OnnxNode& node) {
  const std::string& name =
      !node.name.empty() || node.outputs.empty() ? node.name : node.outputs[0];
  return fmt::format("node {} ({})", quote_text(name), quote_text(node.op));
}

bool is_control_flow(const OnnxNode& node) {
  for (const auto& [name, value] : node.attributes)
    if (std::holds_alternative<Subgraph>(value)) return true;
  return false;
}

// The version of a node's domain that the file was written for.
std::int64_t opset_of(const OnnxModel& model, const OnnxNode& node) {
  const auto found = model.opsets.find(node.domain);
  return found == model.opsets.end() ? 1 : found->second;
}

void check_opset(const OnnxModel& model) {
  const auto found = model.opsets.find("");
  if (found == model.opsets.end()) {
    const bool needs_it =
        std::ranges::any_of(model.graph.nodes, [](const OnnxNode& n) { return n.domain.empty(); });
    if (needs_it) fail("does not say which opset it is written for");
    return;
  }
  if (found->second < kOldestOpset || found->second > kNewestOpset)
    fail("is written for opset {}: expected {} to {}", found->second, kOldestOpset, kNewestOpset);
}

// Every op that is missing, with its first node and how many more there are, in one line.
void check_ops(const OnnxModel& model) {
  struct Missing {
    const OnnxNode* first = nullptr;
    int count = 0;
  };
  std::map<std::string, Missing> missing;
  for (const OnnxNode& node : model.graph.nodes) {
    if (OnnxOpRegistry::instance().find(full_name(node)) != nullptr && !is_control_flow(node))
      continue;
    Missing& entry = missing[full_name(node)];
    if (entry.first == nullptr) entry.first = &node;
    ++entry.count;
  }
  if (missing.empty()) return;
  std::vector<std::string> parts;
  for (const auto& [name, entry] : missing) {
    const std::string& node = !entry.first->name.empty() || entry.first->outputs.empty()
                                  ? entry.first->name
                                  : entry.first->outputs[0];
    parts.push_back(fmt::format("{} (node {}{}, opset {}{})", quote_text(name), quote_text(node),
                                entry.count > 1 ? fmt::format(" and {} more", entry.count - 1) : "",
                                opset_of(model, *entry.first),
                                is_control_flow(*entry.first) ? ", control flow" : ""));
  }
  fail("{} not supported: {}", parts.size() == 1 ? "an op is" : "ops are", fmt::join(parts, ", "));
}

// Makes a graph of the nodes, one after the other.
class Importer {
 public:
  Importer(const OnnxModel& model, const ImportOptions& options)
      : model_(model), options_(options) {}

  ImportedGraph run() {
    add_inputs();
    for (const std::size_t index : order()) import_node(model_.graph.nodes[index]);
    add_outputs();
    return std::move(result_);
  }

 private:
  void define(const std::string& name, Known known) {
    if (name.empty()) fail("a value has no name");
    known.name = name;
    if (!values_.emplace(name, std::move(known)).second)
      fail("value {} is made twice", quote_text(name));
  }

  void add_inputs() {
    std::set<std::string> initializers;
    for (const auto& [name, tensor] : model_.graph.initializers) {
      define(name, known_constant(tensor));
      initializers.insert(name);
    }
    const std::map<std::string, std::string> symbols = choose_symbols(model_.graph);
    for (const OnnxValue& input : model_.graph.inputs) {
      if (initializers.contains(input.name)) continue;
      if (const auto fixed = options_.constants.find(input.name);
          fixed != options_.constants.end()) {
        define(input.name, known_constant(fixed->second));
        continue;
      }
      if (!input.has_shape) fail("input {} has no shape", quote_text(input.name));
      if (input.name.empty()) fail("an input has no name");
      Type type{.dtype = input.dtype, .shape = {}};
      for (std::size_t axis = 0; axis < input.shape.size(); ++axis) {
        if (input.shape[axis].number) {
          type.shape.emplace_back(*input.shape[axis].number);
          continue;
        }
        const std::string& symbol = symbols.at(axis_name(input, axis));
        result_.graph.declare_symbol(symbol);
        type.shape.push_back(Size::symbol(symbol));
      }
      const NodeId node =
          result_.graph.add({.name = input.name, .op = "input", .inputs = {}, .types = {type}});
      define(input.name, {.value = {node, 0}});
    }
  }

  static Known known_constant(Tensor tensor) {
    Known known;
    known.sizes = size_array(tensor);
    if (known.sizes && known.sizes->elements.size() == 1) known.affine = affine_of(*known.sizes);
    known.constant = std::move(tensor);
    return known;
  }

  // The nodes so that each comes behind those it reads. Files should have them so already.
  std::vector<std::size_t> order() const {
    const std::vector<OnnxNode>& nodes = model_.graph.nodes;
    std::map<std::string, std::size_t> makers;
    for (std::size_t i = 0; i < nodes.size(); ++i)
      for (const std::string& output : nodes[i].outputs) {
        if (output.empty()) continue;
        if (values_.contains(output) || !makers.emplace(output, i).second)
          with_place(place_of(nodes[i]),
                     [&] { fail("value {} is made twice", quote_text(output)); });
      }
    std::vector<int> missing(nodes.size(), 0);
    std::map<std::size_t, std::vector<std::size_t>> readers;
    for (std::size_t i = 0; i < nodes.size(); ++i)
      for (const std::string& input : nodes[i].inputs) {
        if (input.empty() || values_.contains(input)) continue;
        const auto maker = makers.find(input);
        if (maker == makers.end())
          with_place(place_of(nodes[i]),
                     [&] { fail("reads {}, which nobody makes", quote_text(input)); });
        ++missing[i];
        readers[maker->second].push_back(i);
      }
    std::set<std::size_t> ready;
    for (std::size_t i = 0; i < nodes.size(); ++i)
      if (missing[i] == 0) ready.insert(i);
    std::vector<std::size_t> result;
    while (!ready.empty()) {
      const std::size_t node = *ready.begin();
      ready.erase(ready.begin());
      result.push_back(node);
      for (const std::size_t reader : readers[node])
        if (--missing[reader] == 0) ready.insert(reader);
    }
    for (std::size_t i = 0; i < nodes.size(); ++i)
      if (missing[i] > 0) fail("{} is part of a cycle or behind one", place_of(nodes[i]));
    return result;
  }

  // A node of ours that is refused has the name of the file's, which need not be said twice.
  void import_node(const OnnxNode& node) {
    try {
      map_node(node);
    } catch (const UserError& error) {
      std::string message = error.message();
      if (message.starts_with("node \"")) {
        const std::size_t end = message.find("\": ");
        if (end != std::string::npos) message.erase(0, end + 3);
      }
      throw UserError(std::move(message), error.hint()).at(place_of(node));
    }
  }

  void map_node(const OnnxNode& node) {
    const OnnxOp& op = *OnnxOpRegistry::instance().find(full_name(node));
    std::vector<Known*> inputs;
    for (const std::string& input : node.inputs)
      inputs.push_back(input.empty() ? nullptr : &values_.at(input));
    const auto opset = opset_of(model_, node);
    check_signature(node, opset);
    if (fold_sizes(op, node, opset, inputs) || fold_constants(op, node, opset, inputs)) return;
    OnnxCall call(
        node, opset, result_.graph, inputs, [this](Known& known) { return materialize(known); },
        [this](Known& known) { return materialize_transposed(known); });
    op.map(call);
    take_results(call);
  }

  void take_results(OnnxCall& call) {
    for (std::size_t i = 0; i < call.num_outputs(); ++i) {
      const std::string& name = call.node().outputs[i];
      if (name.empty()) continue;
      std::optional<Known>& known = call.results()[i];
      if (!known) call.refuse("output {} is not supported", i);
      if (known->constant && !known->sizes) {
        Known complete = known_constant(*known->constant);
        complete.transposed_of = known->transposed_of;
        known = complete;
      }
      define(name, std::move(*known));
    }
  }

  bool fold_sizes(const OnnxOp& op, const OnnxNode& node, std::int64_t opset,
                  const std::vector<Known*>& inputs) {
    if (op.fold == nullptr) return false;
    OnnxCall call(node, opset, result_.graph, inputs, {});
    if (!op.fold(call)) return false;
    take_results(call);
    return true;
  }

  // What constants alone decide is computed now, by the same mapping into a graph of its own.
  bool fold_constants(const OnnxOp& op, const OnnxNode& node, std::int64_t opset,
                      const std::vector<Known*>& inputs) {
    if (inputs.empty()) return false;
    for (const Known* input : inputs)
      if (input != nullptr && !input->constant) return false;
    Graph graph;
    std::map<NodeId, std::vector<Tensor>> values;
    const auto materialize_constant = [&](Known& known) -> Value {
      Type type{.dtype = known.constant->dtype(), .shape = {}};
      for (const std::int64_t size : known.constant->dims()) type.shape.emplace_back(size);
      const NodeId id =
          graph.add({.name = known.name, .op = "input", .inputs = {}, .types = {type}});
      values[id] = {*known.constant};
      return {id, 0};
    };
    // Copies, for what is made of them belongs to this graph.
    std::vector<Known> copies;
    copies.reserve(inputs.size());
    std::vector<Known*> operands;
    for (const Known* input : inputs) {
      if (input == nullptr) {
        operands.push_back(nullptr);
        continue;
      }
      Known& copy = copies.emplace_back(*input);
      copy.value = kNone;
      operands.push_back(&copy);
    }
    OnnxCall call(node, opset, graph, operands, materialize_constant);
    op.map(call);
    verify(graph);  // what a mapping writes of the file's sizes may not fit together
    for (const NodeId id : graph.topological_order()) {
      if (values.contains(id)) continue;
      std::vector<const Tensor*> tensors;
      for (const Value& value : graph.inputs(id))
        tensors.push_back(value.is_none()
                              ? nullptr
                              : &values.at(value.node)[static_cast<std::size_t>(value.index)]);
      for (const Type& type : graph.types(id))
        if (type.num_elements().constant() > kMostFolded)
          fail("makes a constant of {} elements", type.num_elements().text());
      values[id] = ops::run_reference(graph, id, tensors, {});
    }
    for (std::optional<Known>& result : call.results())
      if (result && !result->value.is_none() && !result->constant)
        result->constant =
            values.at(result->value.node)[static_cast<std::size_t>(result->value.index)];
    for (std::optional<Known>& result : call.results())
      if (result) result->value = kNone;
    note_transpose(node, inputs, call);
    take_results(call);
    return true;
  }

  static void note_transpose(const OnnxNode& node, const std::vector<Known*>& inputs,
                             OnnxCall& call) {
    if (node.op != "Transpose" || inputs[0]->constant->rank() != 2 || !call.results()[0]) return;
    if (call.integers("perm", {1, 0}) != std::vector<std::int64_t>{1, 0}) return;
    call.results()[0]->transposed_of = inputs[0]->name;
  }

  // The value as one of the graph's.
  Value materialize(Known& known) {
    if (!known.value.is_none()) return known.value;
    if (known.constant)
      known.value = add_constant(result_, known.name, *known.constant, known.is_buffer);
    else if (known.affine)
      known.value = add_affine(result_.graph, known.name, *known.affine);
    else
      fail("{} holds sizes that are not known before the model runs, and is used as numbers",
           quote_text(known.name));
    return known.value;
  }

  // A matrix as the weight of a layer, a row for each output. What the file transposed before is
  // taken as it was, so that a table and a layer that share it go on sharing.
  Value materialize_transposed(Known& known) {
    if (const auto source = values_.find(known.transposed_of); source != values_.end())
      return materialize(source->second);
    const auto [found, is_new] = transposed_.emplace(known.name, kNone);
    if (!is_new) return found->second;
    const Tensor& matrix = *known.constant;
    Tensor rows(matrix.dtype(), {matrix.dim(1), matrix.dim(0)});
    const std::vector<std::int64_t> strides{1, matrix.dim(1)};
    ops::copy_elements(matrix, ops::strided_indices(rows.dims(), strides), rows);
    return found->second = add_constant(result_, known.name, rows);
  }

  // Whether a type has the sizes that a file states as numbers.
  static bool has_sizes(const Type& type, const std::vector<OnnxSize>& stated) {
    if (type.rank() != stated.size()) return false;
    for (std::size_t axis = 0; axis < stated.size(); ++axis)
      if (stated[axis].number && type.shape[axis].is_constant() &&
          type.shape[axis].constant() != *stated[axis].number)
        return false;
    return true;
  }

  static std::string stated_text(const std::vector<OnnxSize>& shape) {
    std::vector<std::string> sizes;
    for (const OnnxSize& size : shape)
      sizes.push_back(size.number ? std::to_string(*size.number) : quote_text(size.name));
    return fmt::format("[{}]", fmt::join(sizes, ","));
  }

  void add_outputs() {
    std::set<std::string> seen;
    for (const OnnxValue& output : model_.graph.outputs) {
      const auto found = values_.find(output.name);
      if (found == values_.end()) fail("output {} is made by nobody", quote_text(output.name));
      if (!seen.insert(output.name).second)
        fail("output {} is there twice", quote_text(output.name));
      const Value value = with_place(fmt::format("output {}", quote_text(output.name)),
                                     [&] { return materialize(found->second); });
      const Type& type = result_.graph.type(value);
      if (output.has_shape && type.dtype != output.dtype)
        fail("output {} is {}, and the file says {}", quote_text(output.name), to_text(type),
             name(output.dtype));
      if (output.has_shape && !has_sizes(type, output.shape))
        fail("output {} is {}, and the file says {}{}", quote_text(output.name), to_text(type),
             name(output.dtype), stated_text(output.shape));
      result_.graph.set_output(output.name, value);
    }
    if (model_.graph.outputs.empty()) fail("has no outputs");
  }

  const OnnxModel& model_;
  const ImportOptions& options_;
  ImportedGraph result_;
  std::map<std::string, Known> values_;
  std::map<std::string, Value> transposed_;  ///< weights by the name of the matrix
};

}  // namespace

ImportedGraph import_onnx(const OnnxModel& model, const ImportOptions& options) {
  check_opset(model);
  check_ops(model);
  ImportedGraph result = Importer(model, options).run();
  verify(result.graph);  // what the file says may not fit together: its fault, and no pass's
  run_pass("remove-dead-nodes", result.graph);
  // States that only folding or nobody read are gone with their nodes.
  std::erase_if(result.state, [&](const auto& entry) { return !result.graph.find(entry.first); });
  return result;
}

}  // namespace lathe::io::onnx
