#include <nlohmann/json.hpp>

#include "lathe/cli/command.h"
#include "lathe/cli/print_json.h"
#include "lathe/models/family.h"
#include "lathe/report/table.h"

namespace lathe::cli::models_command {
namespace {

using Json = nlohmann::ordered_json;

std::string tasks_of(const models::ModelFamily& family) {
  std::vector<std::string> names;
  for (const models::TaskRecord& task : family.tasks) names.push_back(task.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

// What a builder changes of the family's configuration: "hidden_size 128, ...".
std::string differences(const Attributes& config) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : config)
    parts.push_back(fmt::format("{} {}", key, to_text(value)));
  return fmt::format("{}", fmt::join(parts, ", "));
}

int run(const Settings& settings) {
  report::Table families({"family", "tasks", "what it is"});
  report::Table builders({"builder", "family", "configuration"});
  Json family_list = Json::array(), builder_list = Json::array();
  for (const auto& [name, family] : models::FamilyRegistry::instance().all()) {
    families.row({name, tasks_of(family), family.summary});
    Json tasks = Json::array();
    for (const models::TaskRecord& task : family.tasks) tasks.push_back(task.name);
    family_list.push_back({{"family", name}, {"summary", family.summary}, {"tasks", tasks}});
    for (const auto& [preset, config] : family.presets) {
      builders.row({preset, name, differences(config)});
      builder_list.push_back({{"builder", preset}, {"family", name}});
    }
    if (family.parse_arguments != nullptr) {
      builders.row({name + ":...", name, "sizes as the guide says"});
      builder_list.push_back({{"builder", name + ":..."}, {"family", name}});
    }
  }
  if (settings.json) {
    print_json({{"families", family_list}, {"builders", builder_list}});
    return 0;
  }
  fmt::print("{}\n{}", families.to_text(), builders.to_text());
  fmt::print(
      "\nA directory of one of these families is a model; a builder makes one with fresh "
      "weights.\n");
  return 0;
}

const Register registration{Command{
    .name = "models",
    .summary = "list the families that are read and the builders that make models",
    .examples = "  lathe models\n  lathe models --json",
    .setup = [](Flags) { return [](const Settings& settings) { return run(settings); }; },
}};

}  // namespace
}  // namespace lathe::cli::models_command
