#include "lathe/compress/layer_match.h"

#include <re2/re2.h>

#include "lathe/core/error.h"

namespace lathe::compress {

bool matches(MatchBy by, const std::string& match, std::string_view op, std::string_view layer) {
  switch (by) {
    case MatchBy::Any:
      return true;
    case MatchBy::Type:
      return op == match;
    case MatchBy::Name:
      return layer == match;
    case MatchBy::Regex:
      return RE2::PartialMatch(layer, match);
  }
  return false;
}

MatchBy parse_match_by(std::string_view text) {
  if (text == "type") return MatchBy::Type;
  if (text == "name") return MatchBy::Name;
  if (text == "regex" || text == "regex_name") return MatchBy::Regex;
  throw unknown_name("by", text, {"type", "name", "regex"});
}

void check_match(MatchBy by, const std::string& match) {
  if (by != MatchBy::Regex) return;
  const RE2 pattern(match, RE2::Quiet);
  if (!pattern.ok()) fail("\"{}\" is no pattern: {}", match, pattern.error());
}

}  // namespace lathe::compress
