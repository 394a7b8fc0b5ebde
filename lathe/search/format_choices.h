#pragma once

#include <map>
#include <string>

#include "lathe/search/search_space.h"

namespace lathe::search {

/// The format with its variables filled in; fails on one that has no value.
std::string fill_format(const std::string& format,
                        const std::map<std::string, study::Choice>& values);

/// Fills `formats` with all combinations of the variables that every role can have; fails with the
/// first combination's error when there are none.
void list_formats(FormatChoices& family, const std::vector<compress::TensorRole>& roles);

/// A format that exists, and the values of the variables that make it.
struct ChosenFormat {
  std::string format;
  std::map<std::string, study::Choice> variables;
};
std::vector<ChosenFormat> each_format(const FormatChoices& family);

}  // namespace lathe::search
