#include "lathe/io/onnx/name_layers.h"

#include <algorithm>
#include <set>

#include "lathe/io/onnx/known.h"

namespace lathe::io::onnx {
namespace {

// `encoder.0.up` of `encoder.0.up.weight`.
std::string module_of(const std::string& state) {
  for (const std::string_view ending : {".weight", ".bias"})
    if (state.ends_with(ending)) return state.substr(0, state.size() - ending.size());
  return {};
}

// `encoder.0.up` of a node `/encoder/0/up/MatMul`.
std::string module_of_path(const std::string& node) {
  if (!node.starts_with("/")) return {};
  const std::size_t end = node.rfind('/');
  if (end == 0) return {};
  std::string module = node.substr(1, end - 1);
  std::ranges::replace(module, '/', '.');
  return module;
}

bool is_layer_operand(const OperandSpec& operand) {
  return operand.role == OperandRole::Weight || operand.role == OperandRole::Bias ||
         operand.role == OperandRole::Table || operand.name == "weight" || operand.name == "bias";
}

class LayerNames {
 public:
  explicit LayerNames(ImportedGraph& imported) : imported_(imported), graph_(imported.graph) {}

  void run() {
    for (const NodeId id : graph_.topological_order()) {
      const std::vector<OperandSpec>& operands = graph_.op(id).operands;
      std::string module;
      for (std::size_t i = 0; i < graph_.inputs(id).size() && i < operands.size(); ++i) {
        const Value operand = graph_.input(id, i);
        if (operand.is_none() || !graph_.is(operand.node, "state")) continue;
        if (!is_layer_operand(operands[i])) continue;
        layers_.insert(operand.node);
        if (module.empty()) module = module_of(graph_.name(operand.node));
      }
      if (module.empty() && graph_.is(id, "linear")) module = module_of_path(graph_.name(id));
      if (module.empty()) continue;
      if (graph_.is(id, "linear")) rename_state(graph_.input(id, 1), module + ".weight");
      if (!graph_.find(module)) graph_.rename(id, module);
    }
    for (const NodeId id : graph_.nodes_of("state"))
      if (!layers_.contains(id) && is_anonymous(graph_.name(id)))
        graph_.set_attribute(id, "role", std::string("buffer"));
  }

 private:
  void rename_state(Value value, const std::string& name) {
    if (!graph_.is(value.node, "state") || graph_.find(name)) return;
    const std::string old = graph_.name(value.node);
    if (!is_anonymous(old)) return;
    graph_.rename(value.node, name);
    auto entry = imported_.state.extract(old);
    entry.key() = name;
    imported_.state.insert(std::move(entry));
  }

  ImportedGraph& imported_;
  Graph& graph_;
  std::set<NodeId> layers_;
};

}  // namespace

void name_layers(ImportedGraph& imported) {
  LayerNames(imported).run();
}

}  // namespace lathe::io::onnx
