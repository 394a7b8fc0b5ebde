#include "lathe/search/format_choices.h"

#include <algorithm>

#include "lathe/core/error.h"

namespace lathe::search {
namespace {

// More combinations than this are a mistake, not a family of formats.
constexpr std::size_t kMostFormats = 10'000;

// Calls `visit` with every combination of the variables' values.
template <typename Visit>
void each_combination(const FormatChoices& family, const Visit& visit) {
  std::size_t count = 1;
  for (const auto& [variable, values] : family.variables) {
    if (values.empty()) fail("{}: the list is empty", variable);
    count *= values.size();
    if (count > kMostFormats) fail("more than {} formats", kMostFormats);
  }
  for (std::size_t i = 0; i < count; ++i) {
    std::map<std::string, study::Choice> chosen;
    std::size_t rest = i;
    for (const auto& [variable, values] : family.variables) {
      chosen[variable] = values[rest % values.size()];
      rest /= values.size();
    }
    visit(chosen);
  }
}

}  // namespace

std::string fill_format(const std::string& format,
                        const std::map<std::string, study::Choice>& values) {
  std::string result;
  for (std::size_t begin = 0; begin < format.size();) {
    if (format[begin] != '{') {
      result += format[begin++];
      continue;
    }
    const std::size_t end = format.find('}', begin);
    if (end == std::string::npos) fail("format {}: a brace is not closed", format);
    const std::string name = format.substr(begin + 1, end - begin - 1);
    const auto found = values.find(name);
    if (found == values.end()) fail("format {}: \"{}\" has no values", format, name);
    const auto* text = std::get_if<std::string>(&found->second);
    result += text != nullptr ? *text : study::to_json(found->second);
    begin = end + 1;
  }
  return result;
}

void list_formats(FormatChoices& family, const std::vector<compress::TensorRole>& roles) {
  family.formats.clear();
  std::optional<UserError> first;
  each_combination(family, [&](const std::map<std::string, study::Choice>& values) {
    const std::string format = fill_format(family.format, values);
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
  each_combination(family, [&](const std::map<std::string, study::Choice>& values) {
    std::string format = fill_format(family.format, values);
    if (std::ranges::find(family.formats, format) != family.formats.end())
      found.push_back({std::move(format), values});
  });
  return found;
}

}  // namespace lathe::search
