#include "lathe/train/teacher_copy.h"

#include "lathe/core/copy_nodes.h"
#include "lathe/core/pass.h"
#include "lathe/core/role.h"
#include "lathe/core/select_outputs.h"
#include "lathe/train/make_source.h"

namespace lathe::train {
namespace {

TransformerLayers layers_below(const Graph& graph, const char* output) {
  const std::optional<Value> found = graph.output(output);
  if (!found) fail("has no {}", output);
  return find_transformer_layers(graph, *found);
}

// The part of the teacher's graph that its layers need, without its head and dropout.
Graph layers_alone(const io::Model& teacher) {
  Graph graph = select_outputs(teacher.graph, {"logits"});
  pack_inputs(graph, teacher);
  run_pass("remove-dropout", graph);
  graph.set_output("chosen", layers_below(graph, "logits").chosen);
  return select_outputs(std::move(graph), {"chosen"});
}

}  // namespace

TransformerLayers copy_teacher(Graph& graph, State& state, const io::Model& teacher,
                               const std::string& prefix, std::vector<std::string>& states) {
  const Graph source = layers_alone(teacher);
  TransformerLayers layers = layers_below(source, "chosen");
  NodeCopier copier(source, graph);
  for (const NodeId id : source.topological_order()) {
    const std::string& name = source.name(id);
    if (source.is(id, "input")) {
      const std::optional<NodeId> same = graph.find(name);
      if (same) copier.map({id, 0}, {*same, 0});
      if (!same && !source.uses(id).empty()) fail("reads \"{}\", which the model does not", name);
      continue;
    }
    const NodeId copy = copier.copy(id, prefix + name);
    if (!source.is(id, "state")) continue;
    check(graph.name(copy) == prefix + name, "one teacher of a name");
    // What the teacher knows does not change.
    if (state_role(source, id) == StateRole::Parameter)
      graph.set_attribute(copy, "role", std::string(lathe::name(StateRole::Buffer)));
    state[graph.name(copy)] = teacher.state.at(name);
    states.push_back(graph.name(copy));
  }
  for (NodeId& attention : layers.attentions) attention = copier.at({attention, 0}).node;
  for (Value& input : layers.inputs) input = copier.at(input);
  layers.chosen = copier.at(layers.chosen);
  return layers;
}

}  // namespace lathe::train
