#include "lathe/compress/trained_parameters.h"

#include <algorithm>
#include <set>

#include "lathe/compress/lora.h"

namespace lathe::compress {

std::vector<std::string> fresh_head(const io::Model& model) {
  if (model.fresh.size() < model.state.size()) return model.fresh;
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

std::vector<std::string> parameters_with_moments(const State& state) {
  std::vector<std::string> names;
  for (const std::string_view prefix : {"optimizer.m.", "optimizer.velocity."})
    for (const auto& [name, tensor] : state)
      if (name.starts_with(prefix)) names.push_back(name.substr(prefix.size()));
  return names;
}

std::string module_of(std::string_view state_name) {
  std::string_view module = state_name.substr(0, state_name.rfind('.'));
  for (const std::string_view part : {".lora_A", ".lora_B"})
    if (module.ends_with(part)) module.remove_suffix(part.size());
  return std::string(module);
}

std::vector<ModuleParameters> count_parameters(const Graph& graph,
                                               const std::vector<std::string>& trained) {
  const std::set<std::string> names(trained.begin(), trained.end());
  std::vector<ModuleParameters> modules;
  for (const NodeId id : graph.nodes_of("state")) {
    const std::string module = module_of(graph.name(id));
    auto found = std::find_if(modules.begin(), modules.end(),
                              [&](const ModuleParameters& one) { return one.module == module; });
    if (found == modules.end()) found = modules.insert(found, {.module = module});
    const std::int64_t count = num_elements(graph.types(id)[0].dims({}));
    (names.contains(graph.name(id)) ? found->trained : found->frozen) += count;
  }
  return modules;
}

}  // namespace lathe::compress
