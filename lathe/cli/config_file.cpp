#include "lathe/cli/config_file.h"

#include <toml++/toml.h>

#include <algorithm>

#include "lathe/core/error.h"

namespace lathe::cli {
namespace {

std::string scalar_text(const std::string& key, const toml::node& node) {
  if (const auto text = node.value_exact<std::string>()) return *text;
  if (const auto integer = node.value_exact<std::int64_t>()) return fmt::format("{}", *integer);
  if (const auto real = node.value_exact<double>()) return fmt::format("{}", *real);
  fail("{}: expected a text, a number, true or false, or a list of them", key);
}

void add_option(std::vector<std::string>& words, const std::string& key, const toml::node& node,
                const std::vector<std::string>& flags, const std::vector<std::string>& repeated) {
  std::string flag = "--" + key;
  std::replace(flag.begin(), flag.end(), '_', '-');
  if (std::find(flags.begin(), flags.end(), flag) == flags.end()) {
    const std::string nearest = nearest_name(flag, flags);
    throw UserError(fmt::format("unknown option \"{}\"", key),
                    nearest.empty() ? "" : fmt::format("did you mean \"{}\"?", nearest.substr(2)));
  }
  if (const auto on = node.value_exact<bool>()) {
    if (*on) words.push_back(flag);
    return;
  }
  const toml::array* const list = node.as_array();
  if (list != nullptr && std::ranges::count(repeated, flag) > 0) {
    for (const toml::node& item : *list) words.insert(words.end(), {flag, scalar_text(key, item)});
    return;
  }
  words.push_back(flag);
  if (list != nullptr) {
    std::string joined;
    for (const toml::node& item : *list)
      joined += (joined.empty() ? "" : ",") + scalar_text(key, item);
    words.push_back(joined);
    return;
  }
  words.push_back(scalar_text(key, node));
}

}  // namespace

std::vector<std::string> read_config_file(const std::string& path, const std::string& command,
                                          const std::vector<std::string>& flags,
                                          const std::vector<std::string>& repeated,
                                          const std::vector<std::string>& lists) {
  toml::table file;
  try {
    file = toml::parse_file(path);
  } catch (const toml::parse_error& error) {
    const toml::source_position place = error.source().begin;
    if (place.line == 0) fail("{}: cannot be read", path);
    fail("{}:{}:{}: {}", path, place.line, place.column, error.description());
  }
  const toml::table* section = file[command].as_table();
  std::vector<std::string> words;
  for (const auto& [key, node] : section != nullptr ? *section : file) {
    if (node.is_table()) continue;  // another command's
    if (node.is_array_of_tables() && std::ranges::count(lists, key.str()) > 0) continue;
    with_place(fmt::format("{}:{}", path, node.source().begin.line),
               [&, &name = key, &value = node] {
                 add_option(words, std::string(name), value, flags, repeated);
               });
  }
  return words;
}

}  // namespace lathe::cli
