#include "lathe/study/distribution.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lathe/core/error.h"
#include "lathe/study/json_text.h"
#include "lathe/study/math/decimal.h"

namespace lathe::study {
namespace {

using nlohmann::json;
__extension__ using Wide = __int128;  // the distance of two int64 does not fit into one

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <typename... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;  // clang 16 does not deduce it by itself

json json_of(const Choice& choice) {
  return std::visit(Overloaded{[](std::monostate) { return json(nullptr); },
                               [](const auto& value) { return json(value); }},
                    choice);
}

Choice choice_of(const json& value) {
  switch (value.type()) {
    case json::value_t::null:
      return std::monostate{};
    case json::value_t::boolean:
      return value.get<bool>();
    case json::value_t::number_integer:
      return value.get<std::int64_t>();
    case json::value_t::number_unsigned: {
      const auto number = value.get<std::uint64_t>();
      if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        return static_cast<double>(number);
      return static_cast<std::int64_t>(number);
    }
    case json::value_t::number_float:
      return value.get<double>();
    case json::value_t::string:
      return value.get<std::string>();
    default:
      fail("a choice is null, true, false, a number or a text, not {}", to_json_text(value));
  }
}

std::optional<double> number_of(const Choice& choice) {
  return std::visit(
      Overloaded{[](std::monostate) { return std::optional<double>(); },
                 [](const std::string&) { return std::optional<double>(); },
                 [](const auto& value) { return std::optional(static_cast<double>(value)); }},
      choice);
}

std::string describe_choices(const CategoricalDistribution& categorical) {
  constexpr std::size_t kShown = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, categorical.choices.size()); ++i)
    text += (i == 0 ? "" : ", ") + to_json(categorical.choices[i]);
  if (categorical.choices.size() > kShown)
    text += fmt::format(", ... ({} in all)", categorical.choices.size());
  return text;
}

FloatDistribution validated_float(FloatDistribution d) {
  if (!std::isfinite(d.low) || !std::isfinite(d.high))
    fail("the range from {} to {} is not finite", d.low, d.high);
  if (d.low > d.high) fail("low {} is above high {}", d.low, d.high);
  if (d.log && d.step) fail("a log range has no step");
  if (d.log && d.low <= 0) fail("the low end of a log range is {}, expected more than 0", d.low);
  if (d.step && !(*d.step > 0 && std::isfinite(*d.step)))
    fail("step is {}, expected more than 0", *d.step);
  if (d.step) d.high = last_step(d.low, d.high, *d.step);
  return d;
}

IntDistribution validated_int(IntDistribution d) {
  if (d.low > d.high) fail("low {} is above high {}", d.low, d.high);
  if (d.step <= 0) fail("step is {}, expected at least 1", d.step);
  if (d.log && d.step != 1) fail("a log range has no step");
  if (d.log && d.low < 1) fail("the low end of a log range is {}, expected at least 1", d.low);
  const Wide steps = (Wide{d.high} - d.low) / d.step;
  d.high = static_cast<std::int64_t>(d.low + steps * d.step);
  return d;
}

std::string_view kind_of(const Distribution& distribution) {
  constexpr std::string_view kNames[] = {"float", "int", "categorical"};
  return kNames[distribution.index()];
}

double number_at(const json& attributes, std::string_view key) {
  const auto found = attributes.find(key);
  if (found == attributes.end() || !found->is_number()) fail("\"{}\" is not a number", key);
  return found->get<double>();
}

std::int64_t whole_at(const json& attributes, std::string_view key,
                      std::optional<std::int64_t> otherwise = {}) {
  const auto found = attributes.find(key);
  if (otherwise && (found == attributes.end() || found->is_null())) return *otherwise;
  if (found == attributes.end() || !found->is_number()) fail("\"{}\" is not a whole number", key);
  if (found->is_number_unsigned()) {
    const auto number = found->get<std::uint64_t>();
    if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      fail("\"{}\" is {}, more than 64 bits hold", key, number);
    return static_cast<std::int64_t>(number);
  }
  if (found->is_number_integer()) return found->get<std::int64_t>();
  const double number = found->get<double>();
  if (number != std::floor(number) || std::abs(number) >= 0x1p63)
    fail("\"{}\" is {}, expected a whole number", key, number);
  return static_cast<std::int64_t>(number);
}

bool flag_at(const json& attributes, std::string_view key) {
  const auto found = attributes.find(key);
  if (found == attributes.end() || found->is_null()) return false;
  if (!found->is_boolean()) fail("\"{}\" is not true or false", key);
  return found->get<bool>();
}

// Names of Optuna's classes, with those it had before version 3, and of its short form.
Distribution distribution_of(const std::string& name, const json& a) {
  if (name == "CategoricalDistribution" || name == "categorical") {
    const auto found = a.find("choices");
    if (found == a.end() || !found->is_array()) fail("\"choices\" is not a list");
    CategoricalDistribution categorical;
    for (const json& each : *found) categorical.choices.push_back(choice_of(each));
    return categorical;
  }
  const bool is_old_log = name == "LogUniformDistribution" || name == "IntLogUniformDistribution";
  const bool is_log = is_old_log || flag_at(a, "log");
  if (name == "FloatDistribution" || name == "UniformDistribution" || name == "float" ||
      name == "LogUniformDistribution" || name == "DiscreteUniformDistribution") {
    FloatDistribution d{.low = number_at(a, "low"), .high = number_at(a, "high"), .log = is_log};
    const char* step = name == "DiscreteUniformDistribution" ? "q" : "step";
    if (a.contains(step) && !a[step].is_null()) d.step = number_at(a, step);
    return d;
  }
  if (name == "IntDistribution" || name == "IntUniformDistribution" || name == "int" ||
      name == "IntLogUniformDistribution") {
    // The old log form carried a step that nothing ever read.
    return IntDistribution{.low = whole_at(a, "low"),
                           .high = whole_at(a, "high"),
                           .log = is_log,
                           .step = is_old_log ? 1 : whole_at(a, "step", 1)};
  }
  throw unknown_name("distribution", name,
                     {"CategoricalDistribution", "FloatDistribution", "IntDistribution"});
}

}  // namespace

std::string to_json(const Choice& choice) {
  return to_json_text(json_of(choice));
}

Choice parse_choice(std::string_view json) {
  return choice_of(parse_json(json));
}

bool is_same(const Choice& a, const Choice& b) {
  const std::optional<double> x = number_of(a);
  const std::optional<double> y = number_of(b);
  if (!x || !y) return a == b;
  const auto* i = std::get_if<std::int64_t>(&a);
  const auto* j = std::get_if<std::int64_t>(&b);
  if (i != nullptr && j != nullptr) return *i == *j;  // beyond 2^53 a double would not tell
  return *x == *y || (std::isnan(*x) && std::isnan(*y));
}

Distribution validated(Distribution distribution, std::string_view parameter) {
  return with_place(fmt::format("parameter \"{}\"", parameter), [&] {
    return std::visit(
        Overloaded{[](const FloatDistribution& d) -> Distribution { return validated_float(d); },
                   [](const IntDistribution& d) -> Distribution { return validated_int(d); },
                   [](CategoricalDistribution& d) -> Distribution {
                     if (d.choices.empty()) fail("there are no choices");
                     return std::move(d);
                   }},
        distribution);
  });
}

std::string describe(const Distribution& distribution) {
  return std::visit(
      Overloaded{[](const FloatDistribution& d) {
                   return fmt::format("{}float from {} to {}{}", d.log ? "log " : "", d.low, d.high,
                                      d.step ? fmt::format(" in steps of {}", *d.step) : "");
                 },
                 [](const IntDistribution& d) {
                   return fmt::format("{}int from {} to {}{}", d.log ? "log " : "", d.low, d.high,
                                      d.step != 1 ? fmt::format(" in steps of {}", d.step) : "");
                 },
                 [](const CategoricalDistribution& d) {
                   return fmt::format("one of {}", describe_choices(d));
                 }},
      distribution);
}

bool is_single(const Distribution& distribution) {
  return num_values(distribution) == 1;
}

std::optional<std::int64_t> num_values(const Distribution& distribution) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  return std::visit(Overloaded{[](const FloatDistribution& d) -> std::optional<std::int64_t> {
                                 if (d.low == d.high) return 1;
                                 if (!d.step) return {};
                                 // `high` lies on a step; halves of one are rounding.
                                 const double steps = std::floor((d.high - d.low) / *d.step + 0.5);
                                 return steps < 0x1p62 ? static_cast<std::int64_t>(steps) + 1
                                                       : kMost;
                               },
                               [](const IntDistribution& d) -> std::optional<std::int64_t> {
                                 const Wide count = (Wide{d.high} - d.low) / d.step + 1;
                                 return static_cast<std::int64_t>(std::min(count, Wide{kMost}));
                               },
                               [](const CategoricalDistribution& d) -> std::optional<std::int64_t> {
                                 return static_cast<std::int64_t>(d.choices.size());
                               }},
                    distribution);
}

bool contains(const Distribution& distribution, double internal) {
  return std::visit(
      Overloaded{[&](const FloatDistribution& d) {
                   if (!(d.low <= internal && internal <= d.high)) return false;
                   if (!d.step) return true;
                   const double steps = (internal - d.low) / *d.step;
                   return std::abs(steps - std::round(steps)) < 1e-8;  // Optuna's tolerance
                 },
                 [&](const IntDistribution& d) {
                   if (!(std::abs(internal) < 0x1p63) || internal != std::floor(internal))
                     return false;
                   const auto whole = static_cast<std::int64_t>(internal);
                   return d.low <= whole && whole <= d.high && (Wide{whole} - d.low) % d.step == 0;
                 },
                 [&](const CategoricalDistribution& d) {
                   return internal >= 0 && internal < static_cast<double>(d.choices.size()) &&
                          internal == std::floor(internal);
                 }},
      distribution);
}

Choice to_external(const Distribution& distribution, double internal) {
  // What is stored may be of another range, which is allowed, but must be an index or a number.
  return std::visit(Overloaded{[&](const FloatDistribution&) -> Choice { return internal; },
                               [&](const IntDistribution&) -> Choice {
                                 if (!(std::abs(internal) < 0x1p63))
                                   fail("{} is not a whole number", internal);
                                 return static_cast<std::int64_t>(internal);
                               },
                               [&](const CategoricalDistribution& d) -> Choice {
                                 if (!contains(d, internal))
                                   fail("there is no choice {} among {}", internal,
                                        d.choices.size());
                                 return d.choices[static_cast<std::size_t>(internal)];
                               }},
                    distribution);
}

double to_internal(const Distribution& distribution, const Choice& value,
                   std::string_view parameter) {
  const auto refuse = [&]() -> double {
    fail("parameter \"{}\": {} is not a value of {}", parameter, to_json(value),
         describe(distribution));
  };
  if (const auto* categorical = std::get_if<CategoricalDistribution>(&distribution)) {
    const auto& choices = categorical->choices;
    const auto found =
        std::ranges::find_if(choices, [&](const Choice& each) { return is_same(each, value); });
    return found == choices.end() ? refuse() : static_cast<double>(found - choices.begin());
  }
  const std::optional<double> number = number_of(value);
  if (!number || !contains(distribution, *number)) return refuse();
  return *number;
}

void require_compatible(const Distribution& known, const Distribution& asked,
                        std::string_view parameter) {
  const auto is_log = [](const Distribution& distribution) {
    return std::visit(Overloaded{[](const CategoricalDistribution&) { return false; },
                                 [](const auto& d) { return d.log; }},
                      distribution);
  };
  bool is_compatible = kind_of(known) == kind_of(asked) && is_log(known) == is_log(asked);
  if (is_compatible && std::holds_alternative<CategoricalDistribution>(known))
    is_compatible = std::ranges::equal(std::get<CategoricalDistribution>(known).choices,
                                       std::get<CategoricalDistribution>(asked).choices, is_same);
  if (!is_compatible)
    fail("parameter \"{}\": the study knows it as {}, asked for {}", parameter, describe(known),
         describe(asked));
}

std::string to_json(const Distribution& distribution) {
  const auto text = [](const auto& value) { return to_json_text(json(value)); };
  return std::visit(
      Overloaded{
          [&](const FloatDistribution& d) {
            return fmt::format(
                R"({{"name": "FloatDistribution", "attributes": {{"step": {}, "low": {}, "high": {}, "log": {}}}}})",
                d.step ? text(*d.step) : "null", text(d.low), text(d.high), d.log);
          },
          [&](const IntDistribution& d) {
            return fmt::format(
                R"({{"name": "IntDistribution", "attributes": {{"log": {}, "step": {}, "low": {}, "high": {}}}}})",
                d.log, d.step, d.low, d.high);
          },
          [&](const CategoricalDistribution& d) {
            json choices = json::array();
            for (const Choice& each : d.choices) choices.push_back(json_of(each));
            return fmt::format(
                R"({{"name": "CategoricalDistribution", "attributes": {{"choices": {}}}}})",
                to_json_text(choices));
          }},
      distribution);
}

Distribution parse_distribution(std::string_view text) {
  return with_place("distribution", [&] {
    const json value = parse_json(text);
    if (!value.is_object()) fail("expected an object, not {}", to_json_text(value));
    const bool is_short = !value.contains("name");
    const json& name = value.contains("name") ? value["name"] : value.value("type", json());
    if (!name.is_string()) fail("\"name\" is not a text");
    const json& attributes = is_short ? value : value.value("attributes", json());
    if (!attributes.is_object()) fail("\"attributes\" is not an object");
    Distribution result = distribution_of(name.get<std::string>(), attributes);
    try {
      return validated(std::move(result), "");
    } catch (const UserError& error) {
      // The caller knows the parameter's name.
      throw UserError(error.message().substr(std::string_view("parameter \"\": ").size()));
    }
  });
}

}  // namespace lathe::study
