#include "lathe/study/storages/journal_replay.h"

#include <algorithm>
#include <limits>

#include "lathe/core/error.h"
#include "lathe/study/json_text.h"
#include "lathe/study/storages/stored_parameter.h"
#include "lathe/study/storages/time_text.h"

namespace lathe::study {
namespace {

using nlohmann::json;

const json& field(const json& line, const char* key) {
  const auto found = line.find(key);
  if (found == line.end()) fail("\"{}\" is missing", key);
  return *found;
}

bool has(const json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && !found->is_null();
}

std::int64_t whole(const json& line, const char* key) {
  const json& value = field(line, key);
  if (!value.is_number_integer()) fail("\"{}\" is not a whole number", key);
  return value.get<std::int64_t>();
}

const std::string& text(const json& value, const char* key) {
  if (!value.is_string()) fail("\"{}\" is not a text", key);
  return value.get_ref<const std::string&>();
}

double number(const json& value, const char* key) {
  if (!value.is_number()) fail("\"{}\" is not a number", key);
  return value.get<double>();
}

const json& object(const json& line, const char* key) {
  const json& value = field(line, key);
  if (!value.is_object()) fail("\"{}\" is not an object", key);
  return value;
}

std::vector<double> numbers(const json& value, const char* key) {
  if (!value.is_array()) fail("\"{}\" is not a list", key);
  std::vector<double> result;
  for (const json& each : value) result.push_back(number(each, key));
  return result;
}

TrialState state_of(const json& line) {
  const std::int64_t state = whole(line, "state");
  if (state < 0 || state > static_cast<std::int64_t>(TrialState::Waiting))
    fail("\"state\" is {}, expected 0 to 4", state);
  return static_cast<TrialState>(state);
}

int step_of(const json& line) {
  const std::int64_t step = whole(line, "step");
  if (step < std::numeric_limits<int>::min() || step > std::numeric_limits<int>::max())
    fail("\"step\" is {}, which is out of range", step);
  return static_cast<int>(step);
}

std::optional<Time> time_of(const json& line, const char* key) {
  if (!has(line, key)) return {};
  return parse_time(text(line.at(key), key));
}

Attributes attributes_of(const json& line, const char* key) {
  Attributes result;
  if (!has(line, key)) return result;
  for (const auto& [name, value] : object(line, key).items()) result[name] = to_json_text(value);
  return result;
}

}  // namespace

const JournalReplay::Study* JournalReplay::find_study(StudyId study) const {
  const auto found = studies_.find(study);
  return found == studies_.end() ? nullptr : &found->second;
}

const JournalReplay::Trial* JournalReplay::find_trial(TrialId trial) const {
  if (trial < 0 || static_cast<std::size_t>(trial) >= trials_.size()) return nullptr;
  return &trials_[static_cast<std::size_t>(trial)];
}

DistributionPtr JournalReplay::distribution(const std::string& json_text) {
  DistributionPtr& known = distributions_[json_text];
  if (!known) known = std::make_shared<const Distribution>(parse_distribution(json_text));
  return known;
}

void JournalReplay::apply(const std::string& line) {
  const json parsed = parse_json(line);
  if (!parsed.is_object()) fail("not an operation");
  switch (static_cast<JournalOperation>(whole(parsed, "op_code"))) {
    case JournalOperation::CreateStudy:
      return create_study(parsed);
    case JournalOperation::DeleteStudy:
      studies_.erase(whole(parsed, "study_id"));
      return;
    case JournalOperation::SetStudyUserAttribute:
      return set_study_attribute(parsed, "user_attr", &StudyRecord::user_attributes);
    case JournalOperation::SetStudySystemAttribute:
      return set_study_attribute(parsed, "system_attr", &StudyRecord::system_attributes);
    case JournalOperation::CreateTrial:
      return create_trial(parsed);
    case JournalOperation::SetTrialParameter:
      return set_parameter(parsed);
    case JournalOperation::SetTrialStateValues:
      return set_state(parsed);
    case JournalOperation::SetTrialIntermediateValue:
      if (TrialRecord* trial = changeable(parsed))
        trial->intermediate_values[step_of(parsed)] =
            number(field(parsed, "intermediate_value"), "intermediate_value");
      return;
    case JournalOperation::SetTrialUserAttribute:
      return set_trial_attribute(parsed, "user_attr", &TrialRecord::user_attributes);
    case JournalOperation::SetTrialSystemAttribute:
      return set_trial_attribute(parsed, "system_attr", &TrialRecord::system_attributes);
  }
  fail("unknown operation {}", whole(parsed, "op_code"));
}

void JournalReplay::create_study(const json& line) {
  StudyRecord record{
      .id = next_study_, .name = text(field(line, "study_name"), "study_name"), .directions = {}};
  for (const double direction : numbers(field(line, "directions"), "directions")) {
    if (direction != 1 && direction != 2) fail("a direction is {}, expected 1 or 2", direction);
    record.directions.push_back(direction == 1 ? Direction::Minimize : Direction::Maximize);
  }
  if (record.directions.empty()) fail("a study without directions");
  for (const auto& [id, study] : studies_)
    if (study.record.name == record.name) return;
  studies_[next_study_++].record = std::move(record);
}

void JournalReplay::set_study_attribute(const json& line, const char* key,
                                        Attributes StudyRecord::*attributes) {
  const auto study = studies_.find(whole(line, "study_id"));
  if (study == studies_.end()) return;
  for (auto& [name, value] : attributes_of(line, key))
    (study->second.record.*attributes)[name] = value;
}

void JournalReplay::create_trial(const json& line) {
  const auto study = studies_.find(whole(line, "study_id"));
  if (study == studies_.end()) return;
  TrialRecord record{.id = static_cast<TrialId>(trials_.size()),
                     .number = static_cast<int>(study->second.trials.size()),
                     .user_attributes = attributes_of(line, "user_attrs"),
                     .system_attributes = attributes_of(line, "system_attrs"),
                     .start = time_of(line, "datetime_start"),
                     .complete = time_of(line, "datetime_complete")};
  if (has(line, "state")) record.state = state_of(line);
  if (has(line, "value")) record.values = {number(line.at("value"), "value")};
  if (has(line, "values")) record.values = numbers(line.at("values"), "values");
  if (has(line, "params")) {
    const json& distributions = object(line, "distributions");
    for (const auto& [name, value] : object(line, "params").items()) {
      const DistributionPtr known =
          distribution(text(field(distributions, name.c_str()), "distributions"));
      record.parameters.push_back(stored_parameter(name, known, number(value, "params")));
      study->second.parameters.try_emplace(name, known);
    }
  }
  if (has(line, "intermediate_values"))
    for (const auto& [step, value] : object(line, "intermediate_values").items())
      record.intermediate_values[step_of({{"step", parse_json(step)}})] =
          number(value, "intermediate_values");
  study->second.trials.push_back(record.id);
  if (!is_finished(record.state)) study->second.unfinished.insert(record.id);
  trials_.push_back({std::move(record), study->first});
}

TrialRecord* JournalReplay::changeable(const json& line) {
  const TrialId id = whole(line, "trial_id");
  if (id < 0 || static_cast<std::size_t>(id) >= trials_.size()) return nullptr;
  TrialRecord& trial = trials_[static_cast<std::size_t>(id)].record;
  return is_finished(trial.state) ? nullptr : &trial;
}

void JournalReplay::set_parameter(const json& line) {
  TrialRecord* trial = changeable(line);
  if (trial == nullptr) return;
  Parameter parameter =
      stored_parameter(text(field(line, "param_name"), "param_name"),
                       distribution(text(field(line, "distribution"), "distribution")),
                       number(field(line, "param_value_internal"), "param_value_internal"));
  // The first that a study has of a name decides what others may be.
  const auto study = studies_.find(trials_[static_cast<std::size_t>(trial->id)].study);
  if (study != studies_.end()) {
    const auto [known, is_new] =
        study->second.parameters.try_emplace(parameter.name, parameter.distribution);
    try {
      if (!is_new) require_compatible(*known->second, *parameter.distribution, parameter.name);
    } catch (const UserError&) {
      return;  // whoever wrote it was told
    }
  }
  study::apply({.parameters = {std::move(parameter)}}, *trial, {});
}

void JournalReplay::set_state(const json& line) {
  TrialRecord* trial = changeable(line);
  if (trial == nullptr) return;
  const TrialState state = state_of(line);
  if (state == TrialState::Running && trial->state == TrialState::Running) return;
  if (state == TrialState::Running) trial->start = time_of(line, "datetime_start");
  if (is_finished(state)) trial->complete = time_of(line, "datetime_complete");
  trial->state = state;
  const auto study = studies_.find(trials_[static_cast<std::size_t>(trial->id)].study);
  if (is_finished(state) && study != studies_.end()) study->second.unfinished.erase(trial->id);
  if (has(line, "values")) trial->values = numbers(line.at("values"), "values");
}

void JournalReplay::set_trial_attribute(const json& line, const char* key,
                                        Attributes TrialRecord::*attributes) {
  TrialRecord* trial = changeable(line);
  if (trial == nullptr) return;
  for (auto& [name, value] : attributes_of(line, key)) (trial->*attributes)[name] = value;
}

}  // namespace lathe::study
