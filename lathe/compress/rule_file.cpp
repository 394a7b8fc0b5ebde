#include "lathe/compress/rule_file.h"

namespace lathe::compress {

toml::table parse_rule_toml(std::string_view text, const std::string& source) {
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    fail("{}:{}: {}", source, error.source().begin.line, error.description());
  }
}

std::string place_of(const toml::node& node, const std::string& source) {
  return fmt::format("{}:{}", source, node.source().begin.line);
}

MatchBy parse_match_by(const toml::node& node) {
  const std::optional<std::string> text = node.value<std::string>();
  if (!text) fail("by must be a text: type, name or regex");
  return parse_match_by(*text);
}

bool take_match(const toml::key& key, const toml::node& node, MatchBy& by, std::string& match) {
  if (key == "by") {
    by = parse_match_by(node);
    return true;
  }
  if (key != "match") return false;
  const std::optional<std::string> text = node.value<std::string>();
  if (!text) fail("match must be a text");
  match = *text;
  return true;
}

void check_match_given(MatchBy by, const std::string& match) {
  if (by == MatchBy::Any) fail("a rule needs by = \"type\", \"name\" or \"regex\"");
  if (match.empty()) fail("a rule needs match");
}

}  // namespace lathe::compress
