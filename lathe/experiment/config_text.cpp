#include "lathe/experiment/config_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lathe/experiment/run_record.h"

namespace lathe::experiment {
namespace {

using nlohmann::json;

// What an option has that nobody gave: no text, or a number that stands for "all" or "none".
bool is_open(const json& value) {
  return value.is_null() || value == "" || value == 0 || (value.is_array() && value.empty());
}

// One pattern that matches what any of several does: a file's list would be read as one word.
std::string joined_patterns(const json& patterns) {
  if (patterns.size() == 1) return patterns[0].get<std::string>();
  std::string joined;
  for (const json& each : patterns)
    joined += fmt::format("{}(?:{})", joined.empty() ? "" : "|", each.get<std::string>());
  return joined;
}

}  // namespace

std::string to_config(const FineTuneOptions& options) {
  std::string text = "[train]\n";
  // JSON's texts and numbers are TOML's too.
  const auto add = [&](const std::string& key, const json& value) {
    text += fmt::format("{} = {}\n", key, value.dump());
  };
  const json all = to_json(options);
  for (const auto& [key, value] : all.items()) {
    const bool is_of_teacher = key.starts_with("teacher") || key == "temperature";
    if (key == "teacher-sha256" || (is_of_teacher && options.teacher.empty())) continue;
    if (key == "dropout") {
      if (!options.graph.dropout) add("no-dropout", true);
    } else if (key == "freeze") {
      if (!is_open(value)) add(key, joined_patterns(value));
    } else if (key == "text-column" || key == "label-column") {
      if (!is_open(value))
        add(key, fmt::format("{}", fmt::join(value.get<std::vector<std::string>>(), ",")));
    } else if (key == "warmup" || key == "seed" || !is_open(value)) {
      add(key, value);
    }
  }
  return text;
}

}  // namespace lathe::experiment
