#include "lathe/search/space_file.h"

#include <algorithm>

#include "lathe/compress/layer_match.h"
#include "lathe/core/error.h"
#include "lathe/search/format_choices.h"
#include "lathe/search/model_choices.h"
#include "lathe/study/toml_values.h"

namespace lathe::search {
namespace {

// Visits the entries of a table as they stand in the file; errors get file, line and key.
template <typename Visit>
void each_entry(const toml::table& table, const std::string& source, const Visit& visit) {
  for (const auto& [key, node] : study::in_file_order(table))
    with_place(fmt::format("{}: {}", study::place_of(*node, source), key),
               [&, &name = key, &value = *node] { visit(name, value); });
}

const toml::table& table_of(const toml::node& node) {
  if (!node.is_table()) fail("expected a table");
  return *node.as_table();
}

// One value or a list of them.
std::vector<study::Choice> list_of(const toml::node& node) {
  const toml::array* list = node.as_array();
  if (list == nullptr) return {study::choice_of(node)};
  if (list->empty()) fail("the list is empty");
  std::vector<study::Choice> values;
  for (const toml::node& each : *list) values.push_back(study::choice_of(each));
  return values;
}

template <typename T>
std::vector<T> list_of(const toml::node& node, std::string_view kind) {
  std::vector<T> values;
  for (const study::Choice& choice : list_of(node)) {
    if (!std::holds_alternative<T>(choice)) fail("{} is not {}", study::to_json(choice), kind);
    values.push_back(std::get<T>(choice));
  }
  return values;
}

// The names in braces.
std::vector<std::string> variables_of(const std::string& text) {
  std::vector<std::string> names;
  for (std::size_t begin = text.find('{'); begin != std::string::npos;
       begin = text.find('{', begin + 1))
    names.push_back(text.substr(begin + 1, text.find('}', begin) - begin - 1));
  return names;
}

// What cannot be searched has one value, though it may stand in a list.
std::string text_of(const toml::node& node) {
  const std::vector<std::string> texts = list_of<std::string>(node, "a text");
  if (texts.size() > 1) fail("{} values: expected one, which is not chosen", texts.size());
  return texts.front();
}

ArchitectureSpace read_architecture(const toml::table& table, const std::string& source) {
  ArchitectureSpace space;
  each_entry(table, source, [&](const std::string& key, const toml::node& node) {
    if (key == "model") space.model = text_of(node);
  });
  each_entry(table, source, [&](const std::string& key, const toml::node& node) {
    const auto sizes = [&] { return list_of<std::int64_t>(node, "a whole number"); };
    const auto words = [&] { return list_of<std::string>(node, "a text"); };
    if (key == "model") return;
    if (space.model.find("{" + key + "}") != std::string::npos) {
      space.variables[key] = list_of(node);
      return;
    }
    if (key == "layers")
      space.layers = sizes();
    else if (key == "heads")
      space.heads = sizes();
    else if (key == "hidden")
      space.hidden = sizes();
    else if (key == "intermediate")
      space.intermediate = sizes();
    else if (key == "activation")
      space.activation = words();
    else if (key == "norm")
      space.norm = words();
    else if (key == "projections")
      space.projections = words();
    else
      throw unknown_name("key", key,
                         has_variables(space) ? variables_of(space.model)
                                              : std::vector<std::string>{
                                                    "activation", "heads", "hidden", "intermediate",
                                                    "layers", "model", "norm", "projections"});
    // What is wrong with a part shows best at its own line; the rest, at the table's.
    if (has_variables(space)) return;
    ArchitectureSpace alone{.model = space.model};
    if (key == "activation") alone.activation = space.activation;
    if (key == "norm") alone.norm = space.norm;
    if (key == "projections") alone.projections = space.projections;
    check_space({.architecture = alone});
  });
  with_place(study::place_of(table, source), [&] {
    models_of(space);  // which has errors of its own
    check_space({.architecture = space});
  });
  return space;
}

FormatChoices read_family(const std::string& name, const toml::node& node,
                          const std::vector<compress::TensorRole>& roles) {
  FormatChoices family{.name = name};
  if (const auto format = node.value_exact<std::string>()) {
    family.format = *format;
  } else {
    for (const auto& [key, value] : table_of(node)) {
      if (key.str() == "format")
        family.format = with_place("format", [&] { return text_of(value); });
      else
        family.variables[std::string(key.str())] =
            with_place(std::string(key.str()), [&] { return list_of(value); });
    }
    if (family.format.empty()) fail("\"format\" is missing");
    for (const auto& [variable, values] : family.variables)
      if (family.format.find("{" + variable + "}") == std::string::npos)
        fail("the format {} has no place for {{{}}}", family.format, variable);
  }
  list_formats(family, roles);
  return family;
}

std::vector<FormatChoices> read_families(const toml::node& node, const std::string& place,
                                         const std::vector<compress::TensorRole>& roles,
                                         const std::string& source) {
  const toml::table& table =
      with_place(place, [&]() -> const toml::table& { return table_of(node); });
  std::vector<FormatChoices> families;
  each_entry(table, source, [&](const std::string& key, const toml::node& family) {
    families.push_back(read_family(key, family, roles));
  });
  if (families.empty()) fail("{}: it names no formats", place);
  return families;
}

PrecisionSpace read_precision(const toml::table& table, const std::string& source) {
  using compress::TensorRole;
  const std::map<std::string, std::vector<TensorRole>> kinds{
      {"families", {TensorRole::Weights, TensorRole::Bias, TensorRole::Inputs}},
      {"weights", {TensorRole::Weights}},
      {"data", {TensorRole::Inputs}}};
  PrecisionSpace space;
  for (const auto& [key, node] : study::in_file_order(table)) {
    const std::string place = fmt::format("{}: {}", study::place_of(*node, source), key);
    if (const auto kind = kinds.find(key); kind != kinds.end()) {
      space.tensors.push_back({.name = key == "families" ? "" : key,
                               .roles = kind->second,
                               .families = read_families(*node, place, kind->second, source)});
    } else if (key == "uniform") {
      const bool is_of_weights = table.contains("weights");
      if (!is_of_weights && !table.contains("families"))
        fail(
            "{}: its formats are of weights, which choose none: expected a table weights or "
            "families beside",
            place);
      space.uniform =
          read_families(*node, place, kinds.at(is_of_weights ? "weights" : "families"), source);
    } else if (key == "layers") {
      with_place(place, [&] {
        space.layers = text_of(*node);
        compress::check_match(compress::MatchBy::Regex, space.layers);
      });
    } else {
      throw unknown_name("key", key, {"data", "families", "layers", "uniform", "weights"})
          .at(place);
    }
  }
  if (space.tensors.empty())
    fail("{}: [precision] names no formats: expected a table families, weights or data",
         study::place_of(table, source));
  if (space.tensors.size() > 1 && std::ranges::any_of(space.tensors, [](const TensorChoices& each) {
        return each.name.empty();
      }))
    fail("{}: families are for weights and data alike: expected it alone",
         study::place_of(table, source));
  return space;
}

PruningSpace read_pruning(const toml::table& table, const std::string& source) {
  PruningSpace space;
  each_entry(table, source, [&](const std::string& key, const toml::node& node) {
    const auto words = [&] { return list_of<std::string>(node, "a text"); };
    if (key == "layers") {
      space.layers = text_of(node);
      compress::check_match(compress::MatchBy::Regex, space.layers);
    } else if (key == "sparsity") {
      for (const study::Choice& choice : list_of(node)) {
        const auto* whole = std::get_if<std::int64_t>(&choice);
        const auto* share = std::get_if<double>(&choice);
        if (whole == nullptr && share == nullptr)
          fail("{} is not a number", study::to_json(choice));
        space.sparsity.push_back(share != nullptr ? *share : static_cast<double>(*whole));
      }
    } else if (key == "method") {
      space.method = words();
    } else if (key == "granularity") {
      space.granularity = words();
    } else {
      throw unknown_name("key", key, {"granularity", "layers", "method", "sparsity"});
    }
  });
  with_place(study::place_of(table, source), [&] { check_space({.pruning = space}); });
  return space;
}

study::Distribution read_range(const toml::node& node) {
  if (!node.is_table()) return study::CategoricalDistribution{list_of(node)};
  toml::table table = *node.as_table();
  if (table.contains("when")) fail("when: a recipe has no conditions, all points have it");
  if (!table.contains("type")) {
    const bool is_whole = table["low"].is_integer() && table["high"].is_integer();
    table.insert("type", is_whole ? "int" : "float");
  }
  return study::distribution_of(table);
}

}  // namespace

SearchSpace parse_search_space(std::string_view text, const std::string& source) {
  const toml::table root = study::parse_toml(text, source);
  SearchSpace space;
  bool is_empty = true;
  for (const auto& [key, node] : study::in_file_order(root)) {
    const std::string place = study::place_of(*node, source);
    const std::vector<std::string> tables{"architecture", "precision", "pruning", "recipe"};
    if (std::ranges::find(tables, key) == tables.end())
      throw unknown_name("table", key, tables).at(place);
    const toml::table& table = with_place(fmt::format("{}: {}", place, key),
                                          [&]() -> const toml::table& { return table_of(*node); });
    is_empty = is_empty && table.empty();
    if (key == "architecture") space.architecture = read_architecture(table, source);
    if (key == "precision") space.precision = read_precision(table, source);
    if (key == "pruning") space.pruning = read_pruning(table, source);
    if (key == "recipe")
      each_entry(table, source, [&](const std::string& name, const toml::node& value) {
        space.recipe[name] = study::validated(read_range(value), name);
        check_space({.recipe = {{name, space.recipe[name]}}});
      });
  }
  if (is_empty)
    fail(
        "{}: the space is empty: expected a table [architecture], [precision], [pruning] or "
        "[recipe]",
        source);
  return space;
}

std::string space_text(const std::string& file_or_name) {
  std::error_code ignored;
  const std::vector<std::string> shipped = shipped_spaces();
  if (std::ranges::find(shipped, file_or_name) != shipped.end())
    return std::string(shipped_space(file_or_name));
  if (!std::filesystem::exists(file_or_name, ignored))
    throw unknown_name("space", file_or_name, shipped)
        .at("neither a file nor one of those that are shipped");
  return study::read_toml_file(file_or_name, "[architecture]");
}

SearchSpace read_search_space(const std::string& file_or_name) {
  const std::string text = space_text(file_or_name);
  const std::vector<std::string> shipped = shipped_spaces();
  const bool is_shipped = std::ranges::find(shipped, file_or_name) != shipped.end();
  return parse_search_space(text, file_or_name + (is_shipped ? ".toml" : ""));
}

}  // namespace lathe::search
