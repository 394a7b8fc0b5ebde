#include "lathe/models/set_inputs.h"

#include <algorithm>

#include "lathe/models/loss.h"

namespace lathe::models {
namespace {

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

const StandIn* find_stand_in(const ModelFamily& family, std::string_view input) {
  for (const StandIn& stand_in : family.stand_ins)
    if (stand_in.input == input) return &stand_in;
  return nullptr;
}

std::vector<std::string> known_inputs(const TaskRecord& task) {
  std::vector<std::string> known = task.inputs;
  known.insert(known.end(), task.optional_inputs.begin(), task.optional_inputs.end());
  return known;
}

// What the graph has may be named too: an imported one has inputs of its own.
void check_names(const Graph& graph, const ModelFamily& family, const TaskRecord& task,
                 const std::vector<std::string>& names) {
  std::vector<std::string> known = known_inputs(task);
  for (const std::string& name : input_names(graph)) known.push_back(name);
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  for (const std::string& name : names)
    if (!contains(known, name))
      throw unknown_name(fmt::format("input of {} for {}", family.name, task.name), name, known);
}

// Puts another node in the place of one, under a name of its own.
void replace(Graph& graph, NodeId old, NodeSpec spec, const std::string& name) {
  spec.types = {graph.types(old)[0]};
  const NodeId fresh = graph.insert_before(old, std::move(spec));
  graph.replace_all_uses({old, 0}, {fresh, 0});
  graph.erase(old);
  graph.rename(fresh, name);
}

void drop_input(Graph& graph, const ModelFamily& family, NodeId input) {
  const std::string name = graph.name(input);
  if (name == kLabelsInput) return detach_loss(graph);
  const StandIn* stand_in = find_stand_in(family, name);
  if (stand_in == nullptr) fail("{} needs the input {}", family.name, name);
  replace(graph, input,
          {.name = stand_in->node + "/new",
           .op = "full_like",
           .inputs = {{graph.at(stand_in->like), 0}},
           .attributes = {{"value", stand_in->value}}},
          stand_in->node);
}

void add_input(Graph& graph, const ModelFamily& family, const std::string& name, LabelKind labels) {
  if (name == kLabelsInput) return attach_loss(graph, labels);
  const StandIn* stand_in = find_stand_in(family, name);
  const std::optional<NodeId> node =
      stand_in == nullptr ? std::nullopt : graph.find(stand_in->node);
  if (!node || !graph.is(*node, "full_like"))
    fail("the graph has no place for the input \"{}\": {}", name,
         stand_in == nullptr ? "nothing stands in for it"
                             : fmt::format("expected a full_like \"{}\"", stand_in->node));
  replace(graph, *node, {.name = name + "/new", .op = "input", .inputs = {}}, name);
}

}  // namespace

std::vector<std::string> input_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const NodeId id : graph.nodes_of("input")) names.push_back(graph.name(id));
  return names;
}

void set_inputs(Graph& graph, const ModelFamily& family, const TaskRecord& task,
                const std::vector<std::string>& names, LabelKind labels) {
  check_names(graph, family, task, names);
  const std::vector<std::string> known = known_inputs(task);
  for (const NodeId id : graph.nodes_of("input"))
    if (!contains(names, graph.name(id)) && contains(known, graph.name(id)))
      drop_input(graph, family, id);
  const std::vector<std::string> present = input_names(graph);
  for (const std::string& name : names)
    if (!contains(present, name)) add_input(graph, family, name, labels);
  verify(graph);
}

}  // namespace lathe::models
