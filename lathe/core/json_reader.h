#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace lathe {

/// What untrusted JSON may cost: a small file must not become a large allocation.
struct JsonLimits {
  std::size_t max_depth = 64;
  std::size_t max_bytes = 100'000'000;
  std::size_t max_values = 10'000'000;
};

/// Parses JSON nobody vouches for: the one place where text becomes JSON. Duplicate keys, bad
/// UTF-8, NUL bytes, text after the value and anything beyond the limits are UserErrors
/// "NAME:LINE:COLUMN: problem", or "LINE:COLUMN: problem" where `name` is empty.
nlohmann::json parse_json(std::string_view text, std::string_view name = {},
                          const JsonLimits& limits = {}, std::int64_t first_line = 1);

/// The reason in a parser's exception in our own words, without the text it stumbled over.
std::string describe_json_problem(const nlohmann::json::exception& problem);

}  // namespace lathe
