#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lathe/study/trial_record.h"

namespace lathe::cli {

/// The command with `{trial}` and the `{name}` of each parameter replaced in every word. A
/// parameter that this trial does not have becomes nothing; braces around anything else stay, so
/// that awk and JSON keep theirs, unless the word is nearly a parameter's name: that fails.
std::vector<std::string> fill_in(const std::vector<std::string>& command,
                                 const study::TrialRecord& trial,
                                 const std::vector<std::string>& parameters);

/// LATHE_PARAM_NAME: the parameter's name in capitals, with `_` for everything that a variable's
/// name cannot have.
std::string parameter_variable(const std::string& parameter);
/// LATHE_TRIAL, LATHE_PARAMS (a JSON object) and the variable of each parameter.
std::vector<std::pair<std::string, std::string>> trial_environment(const study::TrialRecord& trial);

/// The text as one word of a shell.
std::string shell_quoted(const std::string& text);

}  // namespace lathe::cli
