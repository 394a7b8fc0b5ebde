#include "lathe/study/option_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "lathe/core/error.h"

namespace lathe::study {
namespace {

template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number result{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  return result;
}

template <typename Number>
std::string range_text(Number least, Number most, Number none_below, Number none_above) {
  if (least > none_below && most < none_above) return fmt::format(" from {} to {}", least, most);
  if (least > none_below) return fmt::format(", at least {}", least);
  if (most < none_above) return fmt::format(", at most {}", most);
  return "";
}

}  // namespace

NamedOptions parse_named_options(std::string_view text) {
  const std::size_t colon = text.find(':');
  NamedOptions result{.name = std::string(text.substr(0, colon)), .options = {}};
  if (colon == std::string_view::npos) return result;
  std::string_view rest = text.substr(colon + 1);
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view pair = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos || equals == 0)
      fail("\"{}\": expected key=value, not \"{}\"", text, pair);
    const bool is_new =
        result.options.emplace(pair.substr(0, equals), pair.substr(equals + 1)).second;
    if (!is_new) fail("\"{}\": option \"{}\" is given twice", text, pair.substr(0, equals));
  }
  return result;
}

void require_known(const Options& options, const std::vector<KindOption>& known) {
  std::vector<std::string> names;
  for (const KindOption& each : known) names.push_back(each.name);
  for (const auto& [key, value] : options) {
    if (std::ranges::find(names, key) != names.end()) continue;
    if (names.empty()) fail("unknown option \"{}\"; it has no options", key);
    throw unknown_name("option", key, names);
  }
}

std::optional<std::string> OptionReader::text(std::string_view key) const {
  const auto found = options_.find(key);
  return found == options_.end() ? std::nullopt : std::optional(found->second);
}

bool OptionReader::flag(std::string_view key, bool otherwise) const {
  const auto given = text(key);
  if (!given) return otherwise;
  if (*given == "true") return true;
  if (*given == "false") return false;
  fail("option \"{}\": \"{}\" is not true or false", key, *given);
}

std::int64_t OptionReader::whole(std::string_view key, std::int64_t otherwise, std::int64_t least,
                                 std::int64_t most) const {
  const auto given = text(key);
  if (!given) return otherwise;
  const auto result = parse_number<std::int64_t>(*given);
  if (!result || *result < least || *result > most)
    fail("option \"{}\": \"{}\" is not a whole number{}", key, *given,
         range_text<std::int64_t>(least, most, std::numeric_limits<std::int64_t>::min(),
                                  std::numeric_limits<int>::max()));
  return *result;
}

double OptionReader::number(std::string_view key, double otherwise, double least,
                            double most) const {
  const auto given = text(key);
  if (!given) return otherwise;
  const auto result = parse_number<double>(*given);
  if (!result || !std::isfinite(*result) || *result < least || *result > most) {
    const double infinity = std::numeric_limits<double>::infinity();
    fail("option \"{}\": \"{}\" is not a number{}", key, *given,
         range_text(least, most, -infinity, infinity));
  }
  return *result;
}

std::string OptionReader::word(std::string_view key, std::string_view otherwise,
                               const std::vector<std::string>& known) const {
  const auto given = text(key);
  if (!given) return std::string(otherwise);
  if (std::ranges::find(known, *given) == known.end())
    throw unknown_name(fmt::format("value of option \"{}\"", key), *given, known);
  return *given;
}

}  // namespace lathe::study
