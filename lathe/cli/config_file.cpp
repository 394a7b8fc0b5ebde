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

bool has(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// The words of one option.
std::vector<std::string> words_of(const std::string& key, const std::string& flag,
                                  const toml::node& node, const ConfigTarget& target) {
  if (!has(target.flags, flag)) {
    const std::string nearest = nearest_name(flag, target.flags);
    throw UserError(fmt::format("unknown option \"{}\"", key),
                    nearest.empty() ? "" : fmt::format("did you mean \"{}\"?", nearest.substr(2)));
  }
  if (const auto on = node.value_exact<bool>()) {
    if (!has(target.switches, flag)) fail("{} {}: expected a value", key, *on);
    if (*on) return {flag};
    const std::string opposite = "--no-" + flag.substr(2);
    return has(target.flags, opposite) ? std::vector{opposite} : std::vector<std::string>{};
  }
  const toml::array* const list = node.as_array();
  if (has(target.repeated, flag)) {
    std::vector<std::string> words;
    if (has(target.given, flag)) return words;
    if (list == nullptr) return {flag, scalar_text(key, node)};
    for (const toml::node& item : *list) words.insert(words.end(), {flag, scalar_text(key, item)});
    return words;
  }
  if (list == nullptr) return {flag, scalar_text(key, node)};
  std::string joined;
  for (const toml::node& item : *list)
    joined += (joined.empty() ? "" : ",") + scalar_text(key, item);
  return {flag, joined};
}

// The words of each flag, in order; a flag that comes again replaces those it had.
class ConfigWords {
 public:
  ConfigWords(const std::string& path, const ConfigTarget& target) : path_(path), target_(target) {}

  void add(const toml::table& table) {
    for (const auto& [key, node] : table)
      with_place(fmt::format("{}:{}", path_, node.source().begin.line),
                 [&, &name = key, &value = node] { add(std::string(name), value); });
  }

  std::vector<std::string> take() const {
    std::vector<std::string> all;
    for (const auto& [flag, words] : options_) all.insert(all.end(), words.begin(), words.end());
    return all;
  }

 private:
  void add(const std::string& key, const toml::node& node) {
    if (node.is_table()) {
      if (!has(target_.commands, key)) throw unknown_name("command", key, target_.commands);
      return;  // its own, or another command's
    }
    if (node.is_array_of_tables() && has(target_.lists, key)) return;
    std::string flag = "--" + key;
    std::replace(flag.begin(), flag.end(), '_', '-');
    std::vector<std::string> words = words_of(key, flag, node, target_);
    std::erase_if(options_, [&](const auto& option) { return option.first == flag; });
    options_.emplace_back(flag, std::move(words));
  }

  const std::string& path_;
  const ConfigTarget& target_;
  std::vector<std::pair<std::string, std::vector<std::string>>> options_;
};

}  // namespace

std::vector<std::string> read_config_file(const std::string& path, const ConfigTarget& target) {
  toml::table file;
  try {
    file = toml::parse_file(path);
  } catch (const toml::parse_error& error) {
    const toml::source_position place = error.source().begin;
    if (place.line == 0) fail("{}: cannot be read", path);
    fail("{}:{}:{}: {}", path, place.line, place.column, error.description());
  }
  ConfigWords words(path, target);
  words.add(file);
  // [architecture], and [search] with [search.architecture].
  if (target.command.size() > 1)
    if (const toml::table* own = file[target.command.back()].as_table()) words.add(*own);
  const toml::table* table = &file;
  for (const std::string& word : target.command) {
    table = (*table)[word].as_table();
    if (table == nullptr) break;
    words.add(*table);
  }
  return words.take();
}

}  // namespace lathe::cli
