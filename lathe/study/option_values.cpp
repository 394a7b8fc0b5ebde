#include "lathe/study/option_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "lathe/core/error.h"

namespace lathe::study {

namespace {

const std::string* find(const Options& options, std::string_view key) {
  const auto found = options.find(key);
  return found == options.end() ? nullptr : &found->second;
}

template <typename Number>
Number parse(std::string_view key, const std::string& text, Number low, Number high,
             std::string_view kind) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    fail("{}={}: expected {}", key, text, kind);
  // Written so that "not a number" fails too.
  if (!(value >= low && value <= high)) {
    if (high == std::numeric_limits<Number>::max() ||
        static_cast<double>(high) == std::numeric_limits<double>::infinity())
      fail("{}={}: expected {} of at least {}", key, text, kind, low);
    fail("{}={}: expected {} from {} to {}", key, text, kind, low, high);
  }
  return value;
}

}  // namespace

double option_number(const Options& options, std::string_view key, double otherwise, double low,
                     double high) {
  const std::string* text = find(options, key);
  return text == nullptr ? otherwise : parse<double>(key, *text, low, high, "a number");
}

std::int64_t option_whole(const Options& options, std::string_view key, std::int64_t otherwise,
                          std::int64_t low, std::int64_t high) {
  const std::string* text = find(options, key);
  return text == nullptr ? otherwise : parse<std::int64_t>(key, *text, low, high, "a whole number");
}

bool option_switch(const Options& options, std::string_view key, bool otherwise) {
  const std::string* text = find(options, key);
  if (text == nullptr) return otherwise;
  for (const char* yes : {"true", "yes", "on", "1"})
    if (*text == yes) return true;
  for (const char* no : {"false", "no", "off", "0"})
    if (*text == no) return false;
  fail("{}={}: expected true or false", key, *text);
}

std::string option_name(const Options& options, std::string_view key,
                        const std::vector<std::string>& names) {
  const std::string* text = find(options, key);
  if (text == nullptr) return names.front();
  if (std::find(names.begin(), names.end(), *text) == names.end())
    throw unknown_name(key, *text, names);
  return *text;
}

}  // namespace lathe::study
