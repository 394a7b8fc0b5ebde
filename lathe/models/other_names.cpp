#include "lathe/models/other_names.h"

#include <charconv>
#include <optional>

namespace lathe::models {
namespace {

bool stands_for_number(char c) {
  return c == '#' || c == '+';
}

// The name with what `from` matches at its front replaced by `to`, the numbers in their order;
// nullopt where it does not begin so.
std::optional<std::string> renamed(std::string_view name, std::string_view from,
                                   std::string_view to) {
  std::vector<std::int64_t> numbers;  // counted from 0
  for (const char c : from) {
    if (!stands_for_number(c)) {
      if (!name.starts_with(c)) return std::nullopt;
      name.remove_prefix(1);
      continue;
    }
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error != std::errc{} || number < (c == '+' ? 1 : 0)) return std::nullopt;
    name.remove_prefix(static_cast<std::size_t>(end - name.data()));
    numbers.push_back(c == '+' ? number - 1 : number);
  }
  std::string result;
  auto next = numbers.begin();
  for (const char c : to) {
    if (!stands_for_number(c))
      result += c;
    else
      result += fmt::to_string(*next++ + (c == '+' ? 1 : 0));
  }
  return result + std::string(name);
}

const OtherNames* find_other_names(const ModelFamily& family) {
  return Registry<OtherNames>::instance().find(family.name);
}

}  // namespace

bool has_names_in(const ModelFamily& family, std::string_view library) {
  const OtherNames* const names = find_other_names(family);
  return names != nullptr && names->library == library;
}

std::string name_from_elsewhere(const ModelFamily& family, std::string_view tensor) {
  if (const OtherNames* const names = find_other_names(family))
    for (const auto& [other, own] : names->patterns)
      if (std::optional<std::string> name = renamed(tensor, other, own)) return *std::move(name);
  return std::string(tensor);
}

std::string name_elsewhere(const ModelFamily& family, std::string_view state) {
  if (const OtherNames* const names = find_other_names(family))
    for (const auto& [other, own] : names->patterns)
      if (std::optional<std::string> name = renamed(state, own, other)) return *std::move(name);
  return std::string(state);
}

}  // namespace lathe::models
