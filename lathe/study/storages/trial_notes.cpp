#include "lathe/study/storages/trial_notes.h"

#include "lathe/study/json_text.h"

namespace lathe::study {

std::string note(const TrialRecord& trial, const char* key) {
  const auto found = trial.system_attributes.find(key);
  return found == trial.system_attributes.end() ? "" : found->second;
}

std::string fixed_parameters(const TrialRecord& trial) {
  nlohmann::json fixed = nlohmann::json::object();
  if (const std::string enqueued = note(trial, kFixedKey); !enqueued.empty())
    fixed = parse_json(enqueued);
  if (!fixed.is_object()) fixed = nlohmann::json::object();
  for (const Parameter& each : trial.parameters)
    fixed[each.name] = parse_json(to_json(to_external(*each.distribution, each.value)));
  return fixed.empty() ? "" : to_json_text(fixed);
}

}  // namespace lathe::study
