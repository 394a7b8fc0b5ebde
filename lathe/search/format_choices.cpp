#include "lathe/search/format_choices.h"

#include <algorithm>

#include "lathe/core/error.h"

namespace lathe::search {
namespace {

// More combinations than this are a mistake, not a choice.
constexpr std::size_t kMostCombinations = 10'000;

}  // namespace

void each_combination(const std::map<std::string, std::vector<study::Choice>>& variables,
                      const std::function<void(const VariableValues&)>& visit) {
  std::size_t count = 1;
  for (const auto& [variable, values] : variables) {
    if (values.empty()) fail("{}: the list is empty", variable);
    count *= values.size();
    if (count > kMostCombinations) fail("more than {} combinations", kMostCombinations);
  }
  for (std::size_t i = 0; i < count; ++i) {
    VariableValues chosen;
    std::size_t rest = i;
    for (const auto& [variable, values] : variables) {
      chosen[variable] = values[rest % values.size()];
      rest /= values.size();
    }
    visit(chosen);
  }
}

std::string fill_variables(const std::string& text, const VariableValues& values) {
  std::string result;
  for (std::size_t begin = 0; begin < text.size();) {
    if (text[begin] != '{') {
      result += text[begin++];
      continue;
    }
    const std::size_t end = text.find('}', begin);
    if (end == std::string::npos) fail("{}: a brace is not closed", text);
    const std::string name = text.substr(begin + 1, end - begin - 1);
    const auto found = values.find(name);
    if (found == values.end()) fail("{}: \"{}\" has no values", text, name);
    const auto* word = std::get_if<std::string>(&found->second);
    result += word != nullptr ? *word : study::to_json(found->second);
    begin = end + 1;
  }
  return result;
}

void list_formats(FormatChoices& family, const std::vector<compress::TensorRole>& roles) {
  family.formats.clear();
  std::optional<UserError> first;
  each_combination(family.variables, [&](const VariableValues& values) {
    const std::string format = fill_variables(family.format, values);
    try {
      for (const compress::TensorRole role : roles) compress::check_format(role, format);
      family.formats.push_back(format);
    } catch (const UserError& error) {
      if (!first) first = error;
    }
  });
  if (family.formats.empty()) throw *first;
}

std::vector<ChosenFormat> each_format(const FormatChoices& family) {
  std::vector<ChosenFormat> found;
  each_combination(family.variables, [&](const VariableValues& values) {
    std::string format = fill_variables(family.format, values);
    if (std::ranges::find(family.formats, format) != family.formats.end())
      found.push_back({std::move(format), values});
  });
  return found;
}

}  // namespace lathe::search
