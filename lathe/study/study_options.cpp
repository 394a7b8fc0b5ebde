#include "lathe/study/study_options.h"

#include <fmt/format.h>

#include <random>

#include "lathe/core/error.h"
#include "lathe/study/json_text.h"
#include "lathe/study/objective_names.h"
#include "lathe/study/space.h"

namespace lathe::study {
namespace {

using nlohmann::json;

// What a study keeps under a key, or nothing.
std::optional<json> attribute(const StudyRecord& record, std::string_view key) {
  const auto found = record.system_attributes.find(key);
  if (found == record.system_attributes.end()) return {};
  return with_place(fmt::format("study \"{}\": attribute \"{}\"", record.name, key),
                    [&] { return parse_json(found->second); });
}

std::optional<std::string> text_attribute(const StudyRecord& record, std::string_view key) {
  const std::optional<json> value = attribute(record, key);
  if (!value) return {};
  if (!value->is_string()) fail("study \"{}\": attribute \"{}\" is not a text", record.name, key);
  return value->get<std::string>();
}

std::uint64_t random_seed() {
  std::random_device random;
  return (static_cast<std::uint64_t>(random()) << 32) | random();
}

// Declared here, or kept by the study; both must agree.
std::optional<Space> settled_space(const StudyRecord& record, std::optional<Space> declared) {
  return with_place(fmt::format("study \"{}\"", record.name), [&]() -> std::optional<Space> {
    if (declared) declared = validated(std::move(*declared));
    const auto kept = record.system_attributes.find("lathe:space");
    if (kept == record.system_attributes.end()) return declared;
    Space known = parse_space(kept->second);
    if (declared) require_same(known, *declared);
    return known;
  });
}

}  // namespace

void complete(StudyOptions& options, const StudyRecord& record) {
  const auto settle_text = [&](std::optional<std::string>& option, std::string_view key,
                               const char* otherwise) {
    if (!option) option = text_attribute(record, key);
    if (!option) option = otherwise;
  };
  settle_text(options.sampler, "lathe:sampler", "auto");
  settle_text(options.pruner, "lathe:pruner", "none");
  const std::optional<json> seed = attribute(record, "lathe:seed");
  if (seed && !seed->is_number_unsigned())
    fail("study \"{}\": attribute \"lathe:seed\" is not a whole number, at least 0", record.name);
  if (!options.seed) options.seed = seed ? seed->get<std::uint64_t>() : random_seed();
  const std::optional<json> level = attribute(record, "lathe:chance_level");
  if (level && !level->is_number())
    fail("study \"{}\": attribute \"lathe:chance_level\" is not a number", record.name);
  if (!options.chance_level && level) options.chance_level = level->get<double>();
  options.space = settled_space(record, std::move(options.space));
  const std::vector<std::string> names = objective_names(record);
  if (!options.objectives.empty() && !names.empty() && options.objectives != names)
    fail("study \"{}\": its objectives are called {}, not {}", record.name, fmt::join(names, ", "),
         fmt::join(options.objectives, ", "));
  if (options.objectives.empty()) options.objectives = names;
  if (!options.objectives.empty()) named_objectives(options.objectives, record.directions.size());
}

Attributes attributes_to_keep(const StudyOptions& options, const StudyRecord& record) {
  Attributes result = {{"lathe:sampler", to_json_text(*options.sampler)},
                       {"lathe:pruner", to_json_text(*options.pruner)},
                       {"lathe:seed", to_json_text(*options.seed)}};
  if (options.chance_level) result["lathe:chance_level"] = to_json_text(*options.chance_level);
  if (options.space && !record.system_attributes.contains("lathe:space"))
    result["lathe:space"] = to_json(*options.space);
  if (!options.objectives.empty())
    result.merge(named_objectives(options.objectives, record.directions.size()));
  std::erase_if(result, [&](const auto& each) {
    const auto kept = record.system_attributes.find(each.first);
    return kept != record.system_attributes.end() && kept->second == each.second;
  });
  return result;
}

}  // namespace lathe::study
