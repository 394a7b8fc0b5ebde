#include "lathe/cli/trial_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "lathe/core/error.h"
#include "lathe/core/json_reader.h"
#include "lathe/report/plot_axis.h"

namespace lathe::cli {

using Json = nlohmann::ordered_json;

std::string value_text(const study::Choice& value) {
  if (const std::string* text = std::get_if<std::string>(&value)) return *text;
  return study::to_json(value);
}

std::string value_text(const study::Parameter& parameter) {
  return value_text(study::to_external(*parameter.distribution, parameter.value));
}

std::string number_text(double value) {
  return std::isfinite(value) ? report::short_number(value, 6) : fmt::format("{}", value);
}

std::string values_text(const std::vector<double>& values) {
  if (values.empty()) return "-";
  std::vector<std::string> texts;
  for (const double value : values) texts.push_back(number_text(value));
  return fmt::format("{}", fmt::join(texts, " "));
}

std::string parameters_text(const std::vector<study::Parameter>& parameters) {
  std::vector<std::string> texts;
  for (const study::Parameter& parameter : parameters) {
    const study::Choice value = study::to_external(*parameter.distribution, parameter.value);
    const double* number = std::get_if<double>(&value);
    texts.push_back(fmt::format("{}={}", parameter.name,
                                number != nullptr ? number_text(*number) : value_text(value)));
  }
  return fmt::format("{}", fmt::join(texts, " "));
}

std::string state_text(study::TrialState state) {
  std::string text(study::name(state));
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::optional<double> trial_seconds(const study::TrialRecord& trial) {
  if (!trial.start || !trial.complete) return std::nullopt;
  return std::chrono::duration<double>(*trial.complete - *trial.start).count();
}

std::string time_text(study::Time time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count(),
                     clock.subseconds().count());
}

Json number_json(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

Json value_json(const study::Choice& value) {
  return std::visit(
      [](const auto& each) -> Json {
        using Kind = std::decay_t<decltype(each)>;
        if constexpr (std::is_same_v<Kind, std::monostate>)
          return nullptr;
        else if constexpr (std::is_same_v<Kind, double>)
          return number_json(each);
        else
          return each;
      },
      value);
}

Json parameters_json(const std::vector<study::Parameter>& parameters) {
  Json json = Json::object();
  for (const study::Parameter& parameter : parameters)
    json[parameter.name] = value_json(study::to_external(*parameter.distribution, parameter.value));
  return json;
}

Json attribute_json(const std::string& text) {
  try {
    return parse_json(text);
  } catch (const UserError&) {
    return text;  // NaN, or what another program wrote
  }
}

Json attributes_json(const study::Attributes& attributes) {
  Json json = Json::object();
  for (const auto& [key, text] : attributes) json[key] = attribute_json(text);
  return json;
}

Json trial_json(const study::TrialRecord& trial) {
  Json json;
  json["trial"] = trial.number;
  json["state"] = state_text(trial.state);
  if (trial.values.size() == 1) {
    json["value"] = number_json(trial.values[0]);
  } else if (!trial.values.empty()) {
    json["values"] = Json::array();
    for (const double value : trial.values) json["values"].push_back(number_json(value));
  }
  json["params"] = parameters_json(trial.parameters);
  return json;
}

}  // namespace lathe::cli
