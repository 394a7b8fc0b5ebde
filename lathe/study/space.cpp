#include "lathe/study/space.h"

#include <map>

#include "lathe/core/error.h"
#include "lathe/study/json_text.h"

namespace lathe::study {
namespace {

using nlohmann::json;

const SpaceParameter* find(const Space& space, std::string_view name) {
  for (const SpaceParameter& each : space)
    if (each.name == name) return &each;
  return nullptr;
}

std::string condition_text(const SpaceParameter& parameter, const Space& space) {
  if (parameter.parent.empty()) return "always";
  std::string values;
  for (const double value : parameter.parent_values)
    values += (values.empty() ? "" : ", ") +
              to_json(to_external(*find(space, parameter.parent)->distribution, value));
  return fmt::format("when {} is {}", parameter.parent, values);
}

// The values of `parent` that a condition lists, in internal form.
std::vector<double> parent_values(const json& listed, const SpaceParameter& parent) {
  if (!listed.is_array()) fail("the values of \"{}\" are not a list", parent.name);
  std::vector<double> values;
  for (const json& each : listed)
    values.push_back(
        to_internal(*parent.distribution, parse_choice(to_json_text(each)), parent.name));
  return values;
}

SpaceParameter parameter_of(const json& entry, const Space& before) {
  if (!entry.is_object()) fail("expected an object, not {}", to_json_text(entry));
  SpaceParameter parameter;
  const json name = entry.value("name", json());
  if (!name.is_string()) fail("\"name\" is not a text");
  parameter.name = name.get<std::string>();
  return with_place(fmt::format("parameter \"{}\"", parameter.name), [&] {
    parameter.distribution = std::make_shared<const Distribution>(
        parse_distribution(to_json_text(entry.value("distribution", json()))));
    if (!entry.contains("when")) return parameter;
    const json& when = entry["when"];
    if (!when.is_object() || when.size() != 1) fail("\"when\" does not name one parameter");
    parameter.parent = when.begin().key();
    const SpaceParameter* parent = find(before, parameter.parent);
    if (parent == nullptr)
      fail("its condition names \"{}\", which is not before", parameter.parent);
    parameter.parent_values = parent_values(when.begin().value(), *parent);
    return parameter;
  });
}

}  // namespace

Space validated(Space space) {
  std::map<std::string, DistributionPtr, std::less<>> before;
  for (SpaceParameter& each : space) {
    check(each.distribution != nullptr, "a parameter of a space to have a distribution");
    Distribution checked = validated(*each.distribution, each.name);
    // Trials compare pointers first, so one that needs no change is kept.
    if (checked != *each.distribution)
      each.distribution = std::make_shared<const Distribution>(std::move(checked));
    with_place(fmt::format("parameter \"{}\"", each.name), [&] {
      if (each.name.empty()) fail("the name is empty");
      if (before.contains(each.name)) fail("it is declared twice");
      if (each.parent.empty()) return;
      const auto parent = before.find(each.parent);
      if (parent == before.end())
        fail("its condition names \"{}\", which is not before", each.parent);
      if (each.parent_values.empty()) fail("its condition lists no values of \"{}\"", each.parent);
      for (const double value : each.parent_values)
        if (!contains(*parent->second, value))
          fail("its condition lists value {} that \"{}\" cannot have", value, each.parent);
    });
    before.emplace(each.name, each.distribution);
  }
  return space;
}

void require_same(const Space& known, const Space& asked) {
  for (const SpaceParameter& each : asked) {
    const SpaceParameter* same = find(known, each.name);
    if (same == nullptr) fail("parameter \"{}\": the study's space does not have it", each.name);
    const auto text = [](const SpaceParameter& parameter, const Space& space) {
      return describe(*parameter.distribution) + ", " + condition_text(parameter, space);
    };
    const std::string has = text(*same, known);
    const std::string asks = text(each, asked);
    if (*same->distribution != *each.distribution || has != asks)
      fail("parameter \"{}\": the study's space has {}; asked for {}", each.name, has, asks);
  }
  for (const SpaceParameter& each : known)
    if (find(asked, each.name) == nullptr)
      fail("parameter \"{}\": the study's space has it; it is missing here", each.name);
}

std::string to_json(const Space& space) {
  json list = json::array();
  for (const SpaceParameter& each : space) {
    json entry = {{"name", each.name}, {"distribution", parse_json(to_json(*each.distribution))}};
    if (!each.parent.empty()) {
      json values = json::array();
      for (const double value : each.parent_values)
        values.push_back(
            parse_json(to_json(to_external(*find(space, each.parent)->distribution, value))));
      entry["when"] = {{each.parent, std::move(values)}};
    }
    list.push_back(std::move(entry));
  }
  return to_json_text(list);
}

Space parse_space(std::string_view text) {
  return with_place("space", [&] {
    const json list = parse_json(text);
    if (!list.is_array()) fail("expected a list of parameters");
    Space space;
    for (const json& entry : list) space.push_back(parameter_of(entry, space));
    return validated(std::move(space));
  });
}

}  // namespace lathe::study
