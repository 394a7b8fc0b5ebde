#include "lathe/compress/trained_parameters.h"

#include <algorithm>
#include <map>
#include <set>

#include "lathe/compress/lora.h"
#include "lathe/compress/quantizers.h"
#include "lathe/core/role.h"

namespace lathe::compress {

std::vector<std::string> fresh_head(const io::Model& model) {
  const std::set<std::string> fresh(model.fresh.begin(), model.fresh.end());
  const std::vector<NodeId> parameters = states_of(model.graph, StateRole::Parameter);
  const bool is_all_fresh = std::ranges::all_of(
      parameters, [&](NodeId id) { return fresh.contains(model.graph.name(id)); });
  if (!is_all_fresh) return model.fresh;
  std::vector<std::string> names;
  for (const std::string& name : model.fresh) {
    const std::vector<std::string>& prefixes = model.family->head_prefixes;
    if (std::any_of(prefixes.begin(), prefixes.end(),
                    [&](const std::string& prefix) { return name.starts_with(prefix); }))
      names.push_back(name);
  }
  return names;
}

std::vector<std::string> lora_parameters(const Graph& graph,
                                         const std::vector<std::string>& fresh) {
  std::vector<std::string> names;
  for (const LoraPath& path : find_lora(graph))
    for (const NodeId id : {path.a, path.b}) names.push_back(graph.name(id));
  names.insert(names.end(), fresh.begin(), fresh.end());
  return names;
}

std::vector<std::string> unround_parameters(Graph& graph, State& state,
                                            const std::vector<std::string>& names) {
  std::vector<NodeId> nodes;
  std::vector<std::string> rounded;
  for (const Quantizer& quantizer : find_quantizers(graph)) {
    if (!quantizer.is_parameter || std::ranges::find(names, quantizer.state) == names.end())
      continue;
    nodes.push_back(quantizer.node);
    rounded.push_back(quantizer.state);
  }
  bypass_quantizers(graph, nodes);
  std::erase_if(state, [&](const auto& entry) { return !graph.find(entry.first); });
  return rounded;
}

std::vector<std::string> parameters_with_moments(const Graph& training_graph, const State& left) {
  std::set<std::string> found;
  for (const NodeId moment : states_of(training_graph, StateRole::Moment)) {
    if (!left.contains(training_graph.name(moment))) continue;
    // The optimizer's node reads a moment beside the parameter that it is of.
    for (const NodeId reader : training_graph.users(moment))
      for (const Value& value : training_graph.inputs(reader))
        if (!value.is_none() && training_graph.is(value.node, "state") &&
            training_graph.state_updates().contains(value.node) &&
            state_role(training_graph, value.node) != StateRole::Moment)
          found.insert(training_graph.name(value.node));
  }
  return {found.begin(), found.end()};
}

std::string module_of(std::string_view state_name) {
  return std::string(state_name.substr(0, state_name.rfind('.')));
}

std::vector<ModuleParameters> count_parameters(const Graph& graph,
                                               const std::vector<std::string>& trained) {
  const std::set<std::string> names(trained.begin(), trained.end());
  std::map<NodeId, std::string> modules_of_paths;
  for (const LoraPath& path : find_lora(graph))
    modules_of_paths[path.a] = modules_of_paths[path.b] = path.name;
  std::vector<ModuleParameters> modules;
  for (const NodeId id : graph.nodes_of("state")) {
    const bool is_trained = names.contains(graph.name(id));
    if (!is_trained && state_role(graph, id) != StateRole::Parameter) continue;
    const auto of_path = modules_of_paths.find(id);
    const std::string module =
        of_path != modules_of_paths.end() ? of_path->second : module_of(graph.name(id));
    auto found = std::find_if(modules.begin(), modules.end(),
                              [&](const ModuleParameters& one) { return one.module == module; });
    if (found == modules.end()) found = modules.insert(found, {.module = module});
    const std::int64_t count = num_elements(graph.types(id)[0].dims({}));
    (is_trained ? found->trained : found->frozen) += count;
  }
  return modules;
}

}  // namespace lathe::compress
