#pragma once

#include <functional>
#include <map>
#include <string>

#include "lathe/search/search_space.h"

namespace lathe::search {

/// The values of variables, by their names.
using VariableValues = std::map<std::string, study::Choice>;

/// Calls `visit` with every combination of the variables' values; fails where there are too many,
/// or none of one.
void each_combination(const std::map<std::string, std::vector<study::Choice>>& variables,
                      const std::function<void(const VariableValues&)>& visit);

/// A text such as a format with its variables filled in; fails on one that has no value.
std::string fill_variables(const std::string& text, const VariableValues& values);

/// Fills `formats` with all combinations of the variables that every role can have; fails with the
/// first combination's error when there are none.
void list_formats(FormatChoices& family, const std::vector<compress::TensorRole>& roles);

/// A format that exists, and the values of the variables that make it.
struct ChosenFormat {
  std::string format;
  VariableValues variables;
};
std::vector<ChosenFormat> each_format(const FormatChoices& family);

}  // namespace lathe::search
