#include "lathe/cli/trial_result.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "lathe/core/error.h"
#include "lathe/report/markup.h"
#include "lathe/study/json_text.h"

namespace lathe::cli {
namespace {

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t start = line.find_first_not_of(" \t\r");
    if (start == line.npos) return words;
    line.remove_prefix(start);
    const std::size_t end = std::min(line.find_first_of(" \t\r"), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<std::vector<double>> parse_numbers(const std::vector<std::string_view>& words) {
  std::vector<double> numbers;
  for (const std::string_view word : words) {
    const std::optional<double> number = parse_number<double>(word);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

std::vector<double> numbers_at(const nlohmann::json& object, const char* key) {
  std::vector<double> numbers;
  const nlohmann::json& list = object.at(key);
  const bool is_one = !list.is_array();
  for (const nlohmann::json& each : is_one ? nlohmann::json::array({list}) : list) {
    if (!each.is_number()) fail("\"{}\" of the last line: expected numbers", key);
    numbers.push_back(each.get<double>());
  }
  return numbers;
}

std::string text_at(const nlohmann::json& object, const char* key) {
  if (!object.contains(key)) return {};
  if (!object.at(key).is_string()) fail("\"{}\" of the last line: expected a text", key);
  return object.at(key).get<std::string>();
}

// The values of the fields with these names; nothing unless all are there and numbers.
std::optional<std::vector<double>> named_numbers(const nlohmann::json& object,
                                                 const std::vector<std::string>& names) {
  std::vector<double> numbers;
  for (const std::string& name : names) {
    const auto found = object.find(name);
    if (found == object.end() || !found->is_number()) return std::nullopt;
    numbers.push_back(found->get<double>());
  }
  if (numbers.empty()) return std::nullopt;
  return numbers;
}

// What a command of ours printed, by the names of its fields.
TrialResult parse_named(const nlohmann::json& object, std::vector<double> values,
                        const std::vector<std::string>& objectives) {
  TrialResult result;
  result.outcome.values = std::move(values);
  for (const auto& [key, value] : object.items())
    if (value.is_primitive() && std::ranges::find(objectives, key) == objectives.end())
      result.attributes[key] = study::to_json_text(value);
  return result;
}

std::string number_fields(const nlohmann::json& object) {
  std::vector<std::string> names;
  for (const auto& [key, value] : object.items())
    if (value.is_number()) names.push_back(key);
  return fmt::format("{}", fmt::join(names, ", "));
}

TrialResult parse_object(const nlohmann::json& object, const std::vector<std::string>& objectives) {
  if (auto values = named_numbers(object, objectives))
    return parse_named(object, std::move(*values), objectives);
  const bool has_result =
      object.contains("value") || object.contains("values") || object.contains("state");
  if (!has_result)
    throw UserError(
        objectives.empty()
            ? fmt::format("its last line has no \"value\", but {}", number_fields(object))
            : fmt::format("its last line has no number \"{}\"; it has {}",
                          fmt::join(objectives, "\" or no \""), number_fields(object)),
        "--objective NAME says which of them counts");
  TrialResult result;
  if (object.contains("value")) result.outcome.values = numbers_at(object, "value");
  if (object.contains("values")) result.outcome.values = numbers_at(object, "values");
  const std::string state = text_at(object, "state");
  if (state == "pruned")
    result.outcome.state = study::TrialState::Pruned;
  else if (state == "fail")
    result.outcome.state = study::TrialState::Fail;
  else if (!state.empty() && state != "complete")
    throw unknown_name("state", state, {"complete", "fail", "pruned"}).at("the last line");
  result.outcome.reason = text_at(object, "reason");
  if (object.contains("constraints")) result.constraints = numbers_at(object, "constraints");
  if (object.contains("attributes")) {
    if (!object.at("attributes").is_object())
      fail("\"attributes\" of the last line: expected an object");
    for (const auto& [key, value] : object.at("attributes").items())
      result.attributes[key] = study::to_json_text(value);
  }
  return result;
}

}  // namespace

std::optional<ReportLine> parse_report(std::string_view line,
                                       const std::vector<std::string>& objectives) {
  const std::vector<std::string_view> words = words_of(line);
  if (!words.empty() && words[0].starts_with('{') &&
      line.find("\"report\"") != std::string_view::npos) {
    const nlohmann::json object = nlohmann::json::parse(line, nullptr, false);
    if (!object.is_object() || !object.contains("report") || !object["report"].is_number_unsigned())
      return std::nullopt;
    const auto values = named_numbers(object, objectives);
    if (!values) return std::nullopt;
    return ReportLine{object["report"].get<int>(), *values};
  }
  if (words.size() < 3 || words[0] != "report") return std::nullopt;
  const std::optional<int> step = parse_number<int>(words[1]);
  const auto values = parse_numbers({words.begin() + 2, words.end()});
  if (!step || *step < 0 || !values) return std::nullopt;
  return ReportLine{*step, *values};
}

TrialResult parse_result(std::string_view line, std::size_t num_objectives,
                         const std::vector<std::string>& objectives) {
  const std::string expected =
      num_objectives == 1 ? "a number" : fmt::format("{} numbers", num_objectives);
  const std::vector<std::string_view> words = words_of(line);
  if (words.empty()) fail("it wrote nothing; expected {} on its last line", expected);
  TrialResult result;
  if (words[0].starts_with('{')) {
    result = parse_object(with_place("the last line", [&] { return study::parse_json(line); }),
                          objectives);
  } else {
    const auto values = parse_numbers(words);
    if (!values)
      fail("its last line is \"{}\"; expected {} or a JSON object",
           report::shorten(report::printable_line(line), 60), expected);
    result.outcome.values = *values;
  }
  if (result.outcome.state == study::TrialState::Complete &&
      result.outcome.values.size() != num_objectives)
    fail("its last line has {} values; expected {}", result.outcome.values.size(), expected);
  return result;
}

}  // namespace lathe::cli
