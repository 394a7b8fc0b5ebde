#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace lathe::study {

/// Reads JSON with the three words that Python adds to it: NaN, Infinity and -Infinity. Fails on
/// anything else that is not JSON, and on nesting that no attribute needs.
nlohmann::json parse_json(std::string_view text);

/// Writes JSON on one line, spaced and escaped as Python's `json.dumps` does, with those words for
/// numbers that are not finite.
std::string to_json_text(const nlohmann::json& value);

}  // namespace lathe::study
