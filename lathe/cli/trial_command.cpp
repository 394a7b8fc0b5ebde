#include "lathe/cli/trial_command.h"

#include <algorithm>
#include <cctype>

#include "lathe/cli/trial_text.h"
#include "lathe/core/error.h"

namespace lathe::cli {
namespace {

bool is_name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-' ||
         c == '/' || c == ':';
}

std::string fill_in(const std::string& word, const study::TrialRecord& trial,
                    const std::vector<std::string>& parameters) {
  std::string result;
  std::size_t at = 0;
  while (at < word.size()) {
    const std::size_t end = word[at] == '{' ? word.find('}', at) : word.npos;
    if (end == word.npos) {
      result += word[at++];
      continue;
    }
    const std::string name = word.substr(at + 1, end - at - 1);
    if (name == "trial") {
      result += fmt::format("{}", trial.number);
    } else if (const study::Parameter* parameter = trial.find(name)) {
      result += value_text(*parameter);
    } else if (std::find(parameters.begin(), parameters.end(), name) == parameters.end()) {
      const bool is_name =
          !name.empty() && std::all_of(name.begin(), name.end(), is_name_character);
      const std::string nearest = is_name ? nearest_name(name, parameters) : "";
      if (!nearest.empty())
        throw UserError(fmt::format("{{{}}} in the command: the study has no such parameter", name),
                        fmt::format("did you mean {{{}}}?", nearest));
      result += word[at++];
      continue;
    }
    at = end + 1;
  }
  return result;
}

}  // namespace

std::string parameter_variable(const std::string& parameter) {
  std::string name = "LATHE_PARAM_";
  for (const char c : parameter)
    name += std::isalnum(static_cast<unsigned char>(c)) != 0
                ? static_cast<char>(std::toupper(static_cast<unsigned char>(c)))
                : '_';
  return name;
}

std::vector<std::string> fill_in(const std::vector<std::string>& command,
                                 const study::TrialRecord& trial,
                                 const std::vector<std::string>& parameters) {
  std::vector<std::string> words;
  for (const std::string& word : command) words.push_back(fill_in(word, trial, parameters));
  return words;
}

std::vector<std::pair<std::string, std::string>> trial_environment(
    const study::TrialRecord& trial) {
  std::vector<std::pair<std::string, std::string>> variables = {
      {"LATHE_TRIAL", fmt::format("{}", trial.number)},
      {"LATHE_PARAMS",
       parameters_json(trial.parameters)
           .dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)}};
  for (const study::Parameter& parameter : trial.parameters)
    variables.emplace_back(parameter_variable(parameter.name), value_text(parameter));
  return variables;
}

std::string shell_quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text)
    if (c == '\'')
      result += "'\\''";
    else
      result += c;
  return result + "'";
}

}  // namespace lathe::cli
