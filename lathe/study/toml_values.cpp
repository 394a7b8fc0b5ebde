#include "lathe/study/toml_values.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <tuple>

#include "lathe/core/error.h"

namespace lathe::study {
namespace {

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

}  // namespace

toml::table parse_toml(std::string_view text, const std::string& source) {
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    fail("{}:{}: {}", source, error.source().begin.line, error.description());
  }
}

std::string read_toml_file(const std::filesystem::path& path, std::string_view table) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    fail("{}: is a directory; expected a TOML file with a table {}", path.string(), table);
  std::ifstream file(path, std::ios::binary);
  if (!file) fail("{}: cannot be read", path.string());
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (file.bad()) fail("{}: cannot be read", path.string());
  return text;
}

std::vector<std::pair<std::string, const toml::node*>> in_file_order(const toml::table& table) {
  std::vector<std::pair<std::string, const toml::node*>> nodes;
  for (const auto& [key, node] : table) nodes.emplace_back(std::string(key.str()), &node);
  std::ranges::stable_sort(nodes, {}, [](const auto& each) {
    const toml::source_position begin = each.second->source().begin;
    return std::tuple(begin.line, begin.column);
  });
  return nodes;
}

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

}  // namespace lathe::study
