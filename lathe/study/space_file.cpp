#include "lathe/study/space_file.h"

#include <toml++/toml.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <tuple>

#include "lathe/core/error.h"
#include "lathe/study/space.h"

namespace lathe::study {
namespace {

// A parameter as it stands in the file.
struct Entry {
  std::string name;
  const toml::table* table;
  DistributionPtr distribution;
  std::string place;  // file and line
};

std::string place_of(const toml::node& node, const std::string& source) {
  return fmt::format("{}:{}", source, node.source().begin.line);
}

Choice choice_of(const toml::node& node) {
  if (const auto value = node.value_exact<bool>()) return *value;
  if (const auto value = node.value_exact<std::int64_t>()) return *value;
  if (const auto value = node.value_exact<double>()) return *value;
  if (const auto value = node.value_exact<std::string>()) return *value;
  fail("a choice is true, false, a number or a text");
}

double number_at(const toml::table& table, std::string_view key) {
  const toml::node* node = table.get(key);
  if (node == nullptr) fail("\"{}\" is missing", key);
  if (!node->is_number()) fail("\"{}\" is not a number", key);
  return *node->value<double>();
}

std::int64_t whole_at(const toml::table& table, std::string_view key) {
  const toml::node* node = table.get(key);
  if (node == nullptr) fail("\"{}\" is missing", key);
  if (!node->is_integer()) fail("\"{}\" is not a whole number", key);
  return *node->value<std::int64_t>();
}

bool flag_at(const toml::table& table, std::string_view key) {
  const toml::node* node = table.get(key);
  if (node == nullptr) return false;
  if (!node->is_boolean()) fail("\"{}\" is not true or false", key);
  return *node->value<bool>();
}

void require_keys(const toml::table& table, const std::vector<std::string>& known) {
  for (const auto& [key, node] : table)
    if (std::ranges::find(known, key.str()) == known.end())
      throw unknown_name("key", key.str(), known);
}

Distribution distribution_of(const toml::table& table) {
  const toml::node* type = table.get("type");
  if (type == nullptr || !type->is_string())
    fail("\"type\" is missing: expected float, int or categorical");
  const std::string kind = *type->value<std::string>();
  if (kind == "float") {
    require_keys(table, {"type", "low", "high", "step", "log", "when"});
    FloatDistribution d{.low = number_at(table, "low"),
                        .high = number_at(table, "high"),
                        .log = flag_at(table, "log")};
    if (table.contains("step")) d.step = number_at(table, "step");
    return d;
  }
  if (kind == "int") {
    require_keys(table, {"type", "low", "high", "step", "log", "when"});
    return IntDistribution{.low = whole_at(table, "low"),
                           .high = whole_at(table, "high"),
                           .log = flag_at(table, "log"),
                           .step = table.contains("step") ? whole_at(table, "step") : 1};
  }
  if (kind != "categorical") throw unknown_name("type", kind, {"categorical", "float", "int"});
  require_keys(table, {"type", "choices", "when"});
  const toml::array* choices = table["choices"].as_array();
  if (choices == nullptr) fail("\"choices\" is not a list");
  CategoricalDistribution d;
  for (const toml::node& each : *choices) d.choices.push_back(choice_of(each));
  return d;
}

Entry entry_of(const std::string& name, const toml::node& node, const std::string& source) {
  Entry entry{
      .name = name, .table = node.as_table(), .distribution = {}, .place = place_of(node, source)};
  with_place(fmt::format("{}: parameter \"{}\"", entry.place, name), [&] {
    if (entry.table == nullptr) fail("expected a table such as {{type = \"float\", ...}}");
    // a.b = {...} makes a table of tables.
    const bool is_dotted = !entry.table->empty() && entry.table->is_homogeneous<toml::table>();
    if (is_dotted && !entry.table->contains("type"))
      fail("it holds other tables: a name with dots needs quotes");
  });
  with_place(entry.place, [&] {
    const Distribution distribution = with_place(fmt::format("parameter \"{}\"", name),
                                                 [&] { return distribution_of(*entry.table); });
    entry.distribution = std::make_shared<const Distribution>(validated(distribution, name));
  });
  return entry;
}

SpaceParameter parameter_of(const Entry& entry, const std::vector<Entry>& all) {
  SpaceParameter parameter{.name = entry.name, .distribution = entry.distribution};
  const toml::node* when = entry.table->get("when");
  if (when == nullptr) return parameter;
  return with_place(fmt::format("{}: parameter \"{}\"", entry.place, entry.name), [&] {
    const toml::table* condition = when->as_table();
    if (condition == nullptr || condition->size() != 1)
      fail("\"when\" names one other parameter and its values, such as {{layer = \"int\"}}");
    const auto first = condition->begin();
    const toml::node& values = first->second;
    parameter.parent = first->first.str();
    const auto parent = std::ranges::find(all, parameter.parent, &Entry::name);
    if (parent == all.end()) {
      std::vector<std::string> names;
      for (const Entry& each : all) names.push_back(each.name);
      throw unknown_name("parameter", parameter.parent, names).at("\"when\"");
    }
    const auto add = [&](const toml::node& value) {
      parameter.parent_values.push_back(
          to_internal(*parent->distribution, choice_of(value), parent->name));
    };
    if (const toml::array* list = values.as_array()) {
      for (const toml::node& each : *list) add(each);
    } else {
      add(values);
    }
    if (parameter.parent_values.empty()) fail("\"when\" lists no values");
    return parameter;
  });
}

}  // namespace

Space parse_space_toml(std::string_view text, const std::string& source) {
  const toml::table root = [&] {
    try {
      return toml::parse(text);
    } catch (const toml::parse_error& error) {
      fail("{}:{}: {}", source, error.source().begin.line, error.description());
    }
  }();
  const toml::table* listed = root["parameters"].as_table();
  if (listed == nullptr) fail("{}: there is no table [parameters]", source);

  std::vector<std::pair<std::string, const toml::node*>> nodes;
  for (const auto& [key, node] : *listed) nodes.emplace_back(std::string(key.str()), &node);
  if (nodes.empty()) fail("{}: [parameters] is empty", source);
  // A table is sorted by name; people expect the order in which they wrote.
  std::ranges::stable_sort(nodes, {}, [](const auto& each) {
    const toml::source_position begin = each.second->source().begin;
    return std::tuple(begin.line, begin.column);
  });
  std::vector<Entry> entries;
  for (const auto& [name, node] : nodes) entries.push_back(entry_of(name, *node, source));

  std::vector<SpaceParameter> waiting;
  for (const Entry& entry : entries) waiting.push_back(parameter_of(entry, entries));
  Space space;
  while (!waiting.empty()) {
    const auto next = std::ranges::find_if(waiting, [&](const SpaceParameter& each) {
      return each.parent.empty() ||
             std::ranges::find(space, each.parent, &SpaceParameter::name) != space.end();
    });
    if (next == waiting.end()) {
      const auto entry = std::ranges::find(entries, waiting.front().name, &Entry::name);
      fail("{}: parameter \"{}\": its conditions go in a circle", entry->place, entry->name);
    }
    space.push_back(std::move(*next));
    waiting.erase(next);
  }
  return validated(std::move(space));
}

Space read_space_file(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    fail("{}: is a directory; expected a TOML file with a table [parameters]", path.string());
  std::ifstream file(path, std::ios::binary);
  if (!file) fail("{}: cannot be read", path.string());
  const std::string text(std::istreambuf_iterator<char>(file), {});
  if (file.bad()) fail("{}: cannot be read", path.string());
  return parse_space_toml(text, path.string());
}

}  // namespace lathe::study
