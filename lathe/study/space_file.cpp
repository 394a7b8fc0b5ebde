#include "lathe/study/space_file.h"

#include <algorithm>

#include "lathe/core/error.h"
#include "lathe/study/space.h"
#include "lathe/study/toml_values.h"

namespace lathe::study {
namespace {

// A parameter as it stands in the file.
struct Entry {
  std::string name;
  const toml::table* table;
  DistributionPtr distribution;
  std::string place;  // file and line
};

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
  const toml::table root = parse_toml(text, source);
  const toml::table* listed = root["parameters"].as_table();
  if (listed == nullptr) fail("{}: there is no table [parameters]", source);

  const auto nodes = in_file_order(*listed);
  if (nodes.empty()) fail("{}: [parameters] is empty", source);
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
  return parse_space_toml(read_toml_file(path, "[parameters]"), path.string());
}

}  // namespace lathe::study
