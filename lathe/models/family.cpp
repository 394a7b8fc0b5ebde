#include "lathe/models/family.h"

#include <algorithm>

#include "lathe/models/set_inputs.h"

namespace lathe::models {

std::optional<NamedModel> find_named_model(std::string_view name) {
  for (const auto& [family_name, family] : FamilyRegistry::instance().all()) {
    const auto preset = family.presets.find(std::string(name));
    if (preset != family.presets.end()) return NamedModel{&family, preset->second};
    const std::string prefix = family_name + ':';
    if (family.parse_arguments != nullptr && name.starts_with(prefix))
      return with_place(name, [&] {
        return NamedModel{&family, family.parse_arguments(name.substr(prefix.size()))};
      });
  }
  return std::nullopt;
}

std::vector<std::string> named_models() {
  std::vector<std::string> names;
  for (const auto& [family_name, family] : FamilyRegistry::instance().all()) {
    for (const auto& [name, preset] : family.presets) names.push_back(name);
    if (family.parse_arguments != nullptr) names.push_back(family_name + ":...");
  }
  std::sort(names.begin(), names.end());
  return names;
}

const TaskRecord& find_task(const ModelFamily& family, std::string_view task) {
  std::vector<std::string> known;
  for (const TaskRecord& record : family.tasks) {
    if (record.name == task) return record;
    known.push_back(record.name);
  }
  throw unknown_name(fmt::format("task of {}", family.name), task, known);
}

Graph build(const ModelFamily& family, const Attributes& config, const BuildOptions& options) {
  BuildOptions complete = options;
  const TaskRecord& task = find_task(family, options.task);
  if (complete.inputs.empty()) complete.inputs = task.inputs;
  Attributes with_task = config;
  for (const auto& [key, value] : task.config) with_task[key] = value;
  check_attributes(with_task, family.config);
  Graph graph = family.build(AttributeReader(with_task, family.config), complete);
  set_inputs(graph, family, task, complete.inputs, options.labels);
  return graph;
}

}  // namespace lathe::models
