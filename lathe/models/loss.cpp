#include "lathe/models/loss.h"

#include <set>

#include "lathe/core/pass.h"

namespace lathe::models {
namespace {

std::set<NodeId> dependents(const Graph& graph, NodeId source) {
  std::set<NodeId> found{source};
  for (const NodeId id : graph.topological_order())
    for (const Value& operand : graph.inputs(id))
      if (!operand.is_none() && found.contains(operand.node)) found.insert(id);
  return found;
}

const char* loss_op(LabelKind kind) {
  return kind == LabelKind::Class    ? "cross_entropy"
         : kind == LabelKind::Number ? "squared_error"
                                     : "binary_cross_entropy";
}

}  // namespace

void attach_loss(Graph& graph, LabelKind kind) {
  const std::optional<Value> logits = graph.output("logits");
  if (!logits) fail("the graph has no output \"logits\" that labels could be compared with");
  const Type type = graph.type(*logits);
  if (kind == LabelKind::Class && type.rank() == 2 && type.axis(-1) == Size(1))
    kind = LabelKind::Number;
  Type labels = type;
  if (kind == LabelKind::Class) {
    labels.dtype = DType::I32;
    labels.shape.pop_back();
  }
  const Value expected{
      graph.add({.name = kLabelsInput, .op = "input", .inputs = {}, .types = {labels}}), 0};
  const std::string op = loss_op(kind);
  const NodeId total = graph.add({.name = "loss/" + op, .op = op, .inputs = {*logits, expected}});
  const NodeId mean = graph.add({.name = "loss", .op = "div", .inputs = {{total, 0}, {total, 1}}});
  graph.set_output("loss", {mean, 0});
}

std::optional<LabelKind> loss_kind(const Graph& graph) {
  const std::optional<NodeId> labels = graph.find(kLabelsInput);
  if (!labels || !graph.is(*labels, "input")) return std::nullopt;
  for (const NodeId user : graph.users(*labels))
    for (const LabelKind kind : {LabelKind::Class, LabelKind::Number, LabelKind::Set})
      if (graph.is(user, loss_op(kind))) return kind;
  return std::nullopt;
}

void detach_loss(Graph& graph) {
  const std::optional<NodeId> labels = graph.find(kLabelsInput);
  if (!labels || !graph.is(*labels, "input")) return;
  const std::set<NodeId> needing = dependents(graph, *labels);
  std::vector<std::string> outputs;
  for (const auto& [name, value] : graph.outputs())
    if (needing.contains(value.node)) outputs.push_back(name);
  if (outputs.size() == graph.outputs().size())
    fail("without the input \"{}\" the graph would have no output", kLabelsInput);
  for (const std::string& name : outputs) graph.remove_output(name);
  run_pass("remove-dead-nodes", graph);
  if (!graph.uses(*labels).empty())
    fail("the input \"{}\" is also read by \"{}\", which updates a state", kLabelsInput,
         graph.name(graph.users(*labels).front()));
  graph.erase(*labels);
}

}  // namespace lathe::models
