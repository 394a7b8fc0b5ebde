#pragma once

#include <toml++/toml.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/compress/layer_match.h"
#include "lathe/core/error.h"

/// Files of rules by layer: `[[rule]]` tables that name layers, then `[default]` for the rest.
namespace lathe::compress {

/// Reads TOML; errors name the file, as `source`, and the line.
toml::table parse_rule_toml(std::string_view text, const std::string& source);

/// "rules.toml:14".
std::string place_of(const toml::node& node, const std::string& source);

MatchBy parse_match_by(const toml::node& node);

/// Takes `by` or `match` of a `[[rule]]`; false where the key is another.
bool take_match(const toml::key& key, const toml::node& node, MatchBy& by, std::string& match);
/// Fails unless a `[[rule]]` said both.
void check_match_given(MatchBy by, const std::string& match);

/// The rules of a file, the default last. `parse_rule(table, is_default, source)` reads one,
/// putting the line of a key before what is wrong with it; `place` of each is where it stands.
template <typename Rule, typename ParseRule>
std::vector<Rule> parse_rule_tables(const toml::table& root, const std::string& source,
                                    const ParseRule& parse_rule,
                                    const std::vector<std::string>& other_keys) {
  std::vector<Rule> rules;
  std::optional<Rule> last;
  const auto read = [&](const toml::node& node, bool is_default) {
    const std::string place = place_of(node, source);
    Rule rule = parse_rule(*node.as_table(), is_default, source);
    rule.place = place;
    return rule;
  };
  for (const auto& [key, node] : root) {
    if (key == "rule" && node.is_array_of_tables()) {
      for (const toml::node& each : *node.as_array()) rules.push_back(read(each, false));
    } else if (key == "default" && node.is_table()) {
      last = read(node, true);
    } else {
      with_place(place_of(node, source), [&] {
        if (key == "rule") fail("rules are a list: expected [[rule]]");
        if (key == "default") fail("expected [default], a table");
        std::vector<std::string> known{"rule", "default"};
        known.insert(known.end(), other_keys.begin(), other_keys.end());
        throw unknown_name("key", key.str(), known);
      });
    }
  }
  if (last) rules.push_back(*last);
  return rules;
}

}  // namespace lathe::compress
