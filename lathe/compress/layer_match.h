#pragma once

#include <string>
#include <string_view>

namespace lathe::compress {

/// By what a rule names layers: all of them, an op, a node's name, or a pattern (RE2) found in the
/// name.
enum class MatchBy { Any, Type, Name, Regex };

/// Whether a layer of that op and name is meant.
bool matches(MatchBy by, const std::string& match, std::string_view op, std::string_view layer);

/// "type", "name" or "regex".
MatchBy parse_match_by(std::string_view text);

/// Fails where a pattern is none.
void check_match(MatchBy by, const std::string& match);

}  // namespace lathe::compress
