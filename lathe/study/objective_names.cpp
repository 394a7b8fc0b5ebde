#include "lathe/study/objective_names.h"

#include <fmt/format.h>

#include <set>

#include "lathe/core/error.h"
#include "lathe/study/json_text.h"

namespace lathe::study {
namespace {

constexpr const char* kMetricNames = "study:metric_names";  // Optuna's own key

}  // namespace

std::vector<std::string> objective_names(const StudyRecord& study) {
  const auto kept = study.system_attributes.find(kMetricNames);
  if (kept == study.system_attributes.end()) return {};
  return with_place(fmt::format("study \"{}\": attribute \"{}\"", study.name, kMetricNames), [&] {
    const nlohmann::json list = parse_json(kept->second);
    std::vector<std::string> names;
    if (list.is_array())
      for (const nlohmann::json& each : list)
        if (each.is_string()) names.push_back(each.get<std::string>());
    if (names.size() != study.directions.size())
      fail("expected a list of {} texts", study.directions.size());
    return names;
  });
}

std::vector<std::string> objective_labels(const StudyRecord& study) {
  std::vector<std::string> labels = objective_names(study);
  if (!labels.empty()) return labels;
  const std::size_t count = study.directions.size();
  if (count == 1) return {"value"};
  for (std::size_t i = 0; i < count; ++i) labels.push_back(fmt::format("value {}", i));
  return labels;
}

Attributes named_objectives(const std::vector<std::string>& names, std::size_t count) {
  if (names.size() != count)
    fail("objective {}: {} names for {} objective{}; give one for each direction",
         fmt::join(names, ", "), names.size(), count, count == 1 ? "" : "s");
  std::set<std::string> known;
  for (const std::string& each : names) {
    if (each.empty()) fail("objective: a name is empty");
    if (!known.insert(each).second) fail("objective {}: is given twice", each);
  }
  return {{kMetricNames, to_json_text(names)}};
}

}  // namespace lathe::study
