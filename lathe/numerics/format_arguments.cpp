#include "lathe/numerics/format_arguments.h"

#include <algorithm>
#include <charconv>

#include "lathe/core/error.h"

namespace lathe::numerics {

namespace {
constexpr std::int64_t kLargestBlock = std::int64_t{1} << 20;
}

std::int64_t parse_integer(std::string_view text, std::string_view name, std::int64_t low,
                           std::int64_t high) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::invalid_argument || end != text.data() + text.size())
    fail("{} must be a whole number between {} and {}, got \"{}\"", name, low, high, text);
  if (error != std::errc{} || value < low || value > high)
    fail("{} must be between {} and {}, got {}", name, low, high, text);
  return value;
}

FormatArguments::FormatArguments(std::string_view text) {
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    rest_.emplace_back(text.substr(0, comma));
    if (rest_.back().empty()) fail("an argument is empty");
    if (comma == text.npos) break;
    text.remove_prefix(comma + 1);
    if (text.empty()) fail("an argument is missing after the last comma");
  }
}

std::optional<std::string> FormatArguments::next_text() {
  if (rest_.empty() || rest_.front().find('=') != std::string::npos) return std::nullopt;
  std::string first = rest_.front();
  rest_.erase(rest_.begin());
  return first;
}

std::string FormatArguments::text(std::string_view name) {
  std::optional<std::string> next = next_text();
  if (!next) fail("{} is missing", name);
  return *next;
}

std::int64_t FormatArguments::integer(std::string_view name, std::int64_t low, std::int64_t high) {
  return parse_integer(text(name), name, low, high);
}

bool FormatArguments::flag(std::string_view name) {
  known_.emplace_back(name);
  const auto found = std::find(rest_.begin(), rest_.end(), name);
  if (found == rest_.end()) return false;
  rest_.erase(found);
  return true;
}

std::optional<std::string> FormatArguments::option(std::string_view name) {
  known_.emplace_back(name);
  const std::string prefix = std::string(name) + "=";
  const auto found = std::find_if(rest_.begin(), rest_.end(), [&](const std::string& argument) {
    return argument.starts_with(prefix);
  });
  if (found == rest_.end()) return std::nullopt;
  std::string value = found->substr(prefix.size());
  rest_.erase(found);
  return value;
}

std::optional<std::int64_t> FormatArguments::integer_option(std::string_view name, std::int64_t low,
                                                            std::int64_t high) {
  const std::optional<std::string> value = option(name);
  if (!value) return std::nullopt;
  return parse_integer(*value, name, low, high);
}

FormatArguments::Tile FormatArguments::tile_option(std::string_view name, Tile otherwise) {
  const std::optional<std::string> value = option(name);
  if (!value) return otherwise;
  const std::string_view text = *value;
  const std::size_t cross = text.find('x');
  if (cross == text.npos) return {1, parse_integer(text, name, 1, kLargestBlock)};
  return {parse_integer(text.substr(0, cross), name, 1, kLargestBlock),
          parse_integer(text.substr(cross + 1), name, 1, kLargestBlock)};
}

std::int64_t FormatArguments::block_option(std::int64_t otherwise) {
  return integer_option("block", 1, kLargestBlock).value_or(otherwise);
}

void FormatArguments::finish() const {
  if (rest_.empty()) return;
  const std::string name = rest_.front().substr(0, rest_.front().find('='));
  if (known_.empty()) fail("unexpected argument \"{}\"", rest_.front());
  if (std::find(known_.begin(), known_.end(), name) != known_.end())
    fail("unexpected argument \"{}\": {} is given twice, or with or without a value", rest_.front(),
         name);
  throw unknown_name("option", name, known_);
}

}  // namespace lathe::numerics
