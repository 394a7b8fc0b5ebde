#include "lathe/experiment/pipeline/pipeline_config.h"

#include <toml++/toml.h>

#include "lathe/core/error.h"
#include "lathe/experiment/pipeline/stage.h"

namespace lathe::experiment {
namespace {

using nlohmann::json;

std::string place_of(const toml::node& node, const std::string& source) {
  return fmt::format("{}:{}", source, node.source().begin.line);
}

json to_json(const toml::node& node, std::string_view key) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return number->get();
  if (const auto* number = node.as_floating_point()) return number->get();
  if (const auto* flag = node.as_boolean()) return flag->get();
  if (const auto* list = node.as_array()) {
    json result = json::array();
    for (const toml::node& each : *list) result.push_back(to_json(each, key));
    return result;
  }
  if (const auto* table = node.as_table()) {
    json result = json::object();
    for (const auto& [name, each] : *table) result[std::string(name.str())] = to_json(each, key);
    return result;
  }
  fail("{}: expected a text, a number, true or false, or a list of them", key);
}

StageSpec parse_stage(const toml::table& table, const std::string& source) {
  StageSpec stage;
  stage.place = place_of(table, source);
  const std::optional<std::string> kind = table["kind"].value<std::string>();
  if (!kind)
    fail("a stage needs kind = \"...\", one of {}",
         fmt::join(StageRegistry::instance().names(), ", "));
  stage.kind = *kind;
  for (const auto& [key, node] : table)
    if (key != "kind")
      stage.settings[std::string(key.str())] =
          with_place(place_of(node, source), [&] { return to_json(node, key.str()); });
  find_stage(stage.kind).check(stage.settings);
  return stage;
}

}  // namespace

std::vector<StageSpec> parse_pipeline(std::string_view text, const std::string& source) {
  const toml::table root = [&] {
    try {
      return toml::parse(text);
    } catch (const toml::parse_error& error) {
      fail("{}:{}: {}", source, error.source().begin.line, error.description());
    }
  }();
  std::vector<StageSpec> stages;
  if (const toml::node* list = root.get("stage")) {
    if (!list->is_array_of_tables())
      fail("{}: stages are a list: expected [[stage]]", place_of(*list, source));
    for (const toml::node& each : *list->as_array())
      stages.push_back(with_place(place_of(each, source),
                                  [&] { return parse_stage(*each.as_table(), source); }));
  }
  return stages;
}

}  // namespace lathe::experiment
