#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace lathe::io {

/// What untrusted JSON may cost: a small file must not become a large allocation.
struct JsonLimits {
  std::size_t max_depth = 64;
  std::size_t max_bytes = 100'000'000;
  std::size_t max_values = 10'000'000;
};

/// Parses JSON nobody vouches for. Duplicate keys, bad UTF-8, NUL bytes, text after the value and
/// anything beyond the limits are UserErrors "NAME:LINE:COLUMN: problem".
nlohmann::json parse_json(std::string_view text, std::string_view name,
                          const JsonLimits& limits = {});

/// Parses the JSON in a regular file.
nlohmann::json read_json(const std::filesystem::path& path, const JsonLimits& limits = {});

/// The reason in a parser's exception in our own words, without the text it stumbled over.
std::string describe_json_problem(const nlohmann::json::exception& problem);

}  // namespace lathe::io
