#include "lathe/models/set_label_count.h"

#include "lathe/core/role.h"
#include "lathe/models/loss.h"

namespace lathe::models {
namespace {

// A parameter of the layer as a state that can be made anew.
NodeId own_state(const Graph& graph, NodeId layer, std::size_t operand, std::int64_t count) {
  const NodeId source = graph.input(layer, operand).node;
  const std::string_view part = name(operand_role(graph, layer, operand));
  if (!graph.is(source, "state"))
    fail("layer \"{}\" cannot be given {} labels: its {} is computed by {}", graph.name(layer),
         count, part, described(graph, source));
  for (const NodeId user : graph.users(source))
    if (user != layer)
      fail("layer \"{}\" cannot be given {} labels: its {} \"{}\" is also read by {}",
           graph.name(layer), count, part, graph.name(source), described(graph, user));
  return source;
}

}  // namespace

std::optional<std::int64_t> label_count(const Graph& graph) {
  const std::optional<Value> logits = graph.output("logits");
  if (!logits || graph.type(*logits).rank() == 0) return std::nullopt;
  const Size& size = graph.type(*logits).shape.back();
  if (!size.is_constant()) return std::nullopt;
  return size.constant();
}

std::vector<std::string> set_label_count(Graph& graph, const TaskRecord& task, std::int64_t count) {
  if (count < 1) fail("the number of labels is {}: expected 1 or more", count);
  const std::optional<std::int64_t> present = label_count(graph);
  if (present == count) return {};
  if (!present) fail("the graph has no output \"logits\" with a number for each label");
  if (task.label_layer.empty())
    fail("the model cannot be given {} labels: its sizes fix {} logits", count, *present);
  const std::optional<NodeId> layer = graph.find(task.label_layer);
  if (!layer)
    fail("the graph cannot be given {} labels: it has no layer \"{}\"", count, task.label_layer);
  if (graph.output("logits") != Value{*layer, 0})
    fail("layer \"{}\" cannot be given {} labels: the logits come from {}, which stands behind it",
         graph.name(*layer), count, described(graph, graph.output("logits").value_or(kNone).node));
  const bool has_loss = graph.find(kLabelsInput).has_value();
  const bool has_sets = loss_kind(graph) == LabelKind::Set;
  detach_loss(graph);
  for (const NodeId user : graph.users(*layer))
    fail("layer \"{}\" cannot be given {} labels: its logits are also read by {}",
         graph.name(*layer), count, described(graph, user));

  std::vector<std::string> fresh;
  for (std::size_t i = 0; i < graph.inputs(*layer).size(); ++i) {
    const OperandRole role = operand_role(graph, *layer, i);
    if (graph.input(*layer, i).is_none() ||
        (role != OperandRole::Weight && role != OperandRole::Bias))
      continue;
    const NodeId state = own_state(graph, *layer, i, count);
    Type type = graph.types(state)[0];
    type.shape.front() = Size(count);  // outputs come first in weights and biases alike
    graph.set_types(state, {type});
    fresh.push_back(graph.name(state));
  }
  graph.set_types(*layer, infer_types(graph, *layer));
  if (has_loss) attach_loss(graph, has_sets ? LabelKind::Set : LabelKind::Class);
  verify(graph);
  return fresh;
}

}  // namespace lathe::models
