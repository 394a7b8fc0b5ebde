#include <filesystem>

#include "lathe/compress/rule_file.h"
#include "lathe/core/error.h"
#include "lathe/hardware/external/external_layer.h"
#include "lathe/io/mapped_file.h"

namespace lathe::hardware {
namespace {

std::string text_of(const toml::key& key, const toml::node& node) {
  const std::optional<std::string> text = node.value<std::string>();
  if (!text) fail("{} must be a text", key.str());
  return *text;
}

std::int64_t number_of(std::string_view key, const toml::node& node) {
  const std::optional<std::int64_t> number = node.value<std::int64_t>();
  if (!number) fail("{} must be a whole number", key);
  return *number;
}

const toml::table& table_of(const toml::key& key, const toml::node& node) {
  if (!node.is_table()) fail("{} must be a table", key.str());
  return *node.as_table();
}

void read_layer(HardwareRules& rules, const toml::table& table,
                const std::filesystem::path& folder) {
  ExternalLayer layer;
  std::string lanes, toolchain, path;
  for (const auto& [key, node] : table) {
    if (key == "name")
      layer.layer = text_of(key, node);
    else if (key == "parallelism")
      lanes = text_of(key, node);
    else if (key == "toolchain")
      check_toolchain(toolchain = text_of(key, node));
    else if (key == "sv")
      path = text_of(key, node);
    else if (key == "y")
      layer.result = text_of(key, node);
    else if (key == "stages")
      layer.stages = static_cast<int>(number_of("stages", node));
    else if (key == "library")
      layer.library = std::filesystem::absolute(folder / text_of(key, node)).string();
    else if (key == "function")
      layer.function = text_of(key, node);
    else if (key == "registers")
      for (const auto& [name, value] : table_of(key, node))
        layer.registers[std::string(name.str())] = number_of(name.str(), value);
    else if (key == "next")
      for (const auto& [name, value] : table_of(key, node))
        layer.next[std::string(name.str())] = text_of(name, value);
    else
      throw unknown_name("key", key.str(),
                         {"function", "library", "name", "next", "parallelism", "registers",
                          "stages", "sv", "toolchain", "y"});
  }
  if (layer.layer.empty()) fail("a layer needs its name");
  if (!lanes.empty()) add_parallelism(rules.parallelism, layer.layer + "=" + lanes);
  if (path.empty()) {
    if (toolchain == "external") fail("an external layer needs sv, the file of its module");
    if (!layer.result.empty() || !layer.library.empty())
      fail("a definition without sv, the file that is checked against it");
    return;
  }
  if (toolchain == "internal") fail("an internal layer has no sv of its own");
  const std::filesystem::path file = folder / path;
  if (file.extension() != ".sv") fail("sv \"{}\": expected a file that ends in .sv", path);
  layer.module = file.stem().string();
  layer.source = std::string(io::MappedFile::open(file.string())->text());
  external_block(layer);  // what is wrong is said here
  rules.external.push_back(std::move(layer));
}

}  // namespace

void check_toolchain(const std::string& toolchain) {
  if (toolchain == "hls")
    fail(
        "toolchain hls: HLS (high-level synthesis) and vendors' tools are out of scope; write the "
        "module and name it in a rules file");
  if (toolchain != "internal" && toolchain != "external")
    throw unknown_name("toolchain", toolchain, {"external", "internal"});
}

HardwareRules parse_hardware_rules(std::string_view text, const std::string& source) {
  const toml::table root = compress::parse_rule_toml(text, source);
  const std::filesystem::path folder = std::filesystem::path(source).parent_path();
  HardwareRules rules;
  for (const auto& [key, node] : root) {
    with_place(compress::place_of(node, source), [&, &list = node, &name = key] {
      if (name != "layer") throw unknown_name("key", name.str(), {"layer"});
      if (!list.is_array_of_tables()) fail("layers are a list: expected [[layer]]");
    });
    for (const toml::node& each : *node.as_array())
      with_place(compress::place_of(each, source),
                 [&] { read_layer(rules, *each.as_table(), folder); });
  }
  return rules;
}

}  // namespace lathe::hardware
