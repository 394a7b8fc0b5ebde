#include "lathe/io/onnx/export_onnx.h"

#include <nlohmann/json.hpp>
#include <set>

#include "lathe/core/parameters.h"
#include "lathe/core/pass.h"
#include "lathe/io/atomic_file.h"
#include "lathe/io/onnx/onnx_writer.h"
#include "lathe/models/loss.h"

namespace lathe::io::onnx {
namespace {

// The graph as it answers: without a loss and without what is dropped in training.
Graph answering_graph(const Model& model) {
  Graph graph = model.graph;
  if (const std::optional<NodeId> labels = graph.find(models::kLabelsInput);
      labels && graph.is(*labels, "input"))
    models::detach_loss(graph);
  run_pass("remove-dropout", graph);
  run_pass("remove-dead-nodes", graph);
  return graph;
}

bool is_written(const Graph& graph, NodeId id, const std::set<NodeId>& parameters) {
  return !graph.is(id, "state") && !graph.is(id, "input") && !parameters.contains(id);
}

void check_writers(const Graph& graph, const std::set<NodeId>& parameters) {
  std::map<std::string, std::string> missing;
  for (const NodeId id : graph.topological_order())
    if (is_written(graph, id, parameters) &&
        OnnxWriterRegistry::instance().find(graph.op(id).name) == nullptr)
      missing.emplace(graph.op(id).name, graph.name(id));
  if (missing.empty()) return;
  std::vector<std::string> parts;
  for (const auto& [op, node] : missing) parts.push_back(fmt::format("{} (node \"{}\")", op, node));
  fail("cannot be written as ONNX: {}", fmt::join(parts, ", "));
}

OnnxValue value_info(const std::string& name, const Type& type) {
  OnnxValue value{.name = name, .dtype = type.dtype};
  for (const Size& size : type.shape) {
    OnnxSize& axis = value.shape.emplace_back();
    if (size.is_constant())
      axis.number = size.constant();
    else
      axis.name = size.text();
  }
  return value;
}

// Gives the outputs their names. A value inside that has such a name gets another.
void write_outputs(const Graph& graph, const std::map<Value, std::string>& names,
                   OnnxGraph& target) {
  for (const auto& [name, value] : graph.outputs()) {
    std::string inner = names.at(value);
    target.outputs.push_back(value_info(name, graph.type(value)));
    if (inner == name) continue;
    const std::string other = name + "/inside";
    for (OnnxNode& node : target.nodes)
      for (auto* list : {&node.inputs, &node.outputs})
        for (std::string& entry : *list)
          if (entry == name) entry = other;
    for (auto& [initializer, tensor] : target.initializers)
      if (initializer == name) initializer = other;
    target.nodes.push_back({.op = "Identity", .name = name, .inputs = {inner}, .outputs = {name}});
  }
}

}  // namespace

ExportedModel export_onnx(const Model& model) {
  const Graph graph = answering_graph(model);
  std::set<NodeId> parameters = find_parameter_nodes(graph);
  // Reshapes of states are other names for the same bytes, and parameters to whoever writes them.
  const Parameters origins(graph);
  for (const NodeId id : graph.nodes_of("reshape"))
    if (origins.contains({id, 0})) parameters.insert(id);
  check_writers(graph, parameters);
  ExportedModel result;
  result.model.producer = "lathe";
  result.model.opsets[""] = kExportedOpset;
  result.model.graph.name = model.family->name;
  if (model.task == "classify" && !model.label_names.empty())
    result.model.metadata[kLabelsKey] = nlohmann::json(model.label_names).dump();
  std::map<Value, std::string> names;
  for (const NodeId id : graph.nodes_of("input")) {
    Type type = graph.types(id)[0];
    if (type.dtype == DType::I32) type.dtype = DType::I64;
    names[{id, 0}] = graph.name(id);
    result.model.graph.inputs.push_back(value_info(graph.name(id), type));
  }
  for (const NodeId id : graph.topological_order()) {
    if (!is_written(graph, id, parameters)) continue;
    ExportCall call({graph, model.state, parameters, result, names}, id);
    with_place(fmt::format("node \"{}\"", graph.name(id)),
               [&] { OnnxWriterRegistry::instance().at(graph.op(id).name, "op").write(call); });
  }
  write_outputs(graph, names, result.model.graph);
  if (!result.custom.empty()) result.model.opsets[kCustomDomain] = 1;
  return result;
}

void write_onnx(const std::filesystem::path& path, const OnnxModel& model) {
  write_atomically(path, serialize_onnx(model));
}

}  // namespace lathe::io::onnx
