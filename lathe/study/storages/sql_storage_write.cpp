// What a worker writes to the trial that it holds in a SqlStorage.
#include <cmath>
#include <cstdlib>

#include "lathe/study/json_text.h"
#include "lathe/study/storages/sql_storage.h"
#include "lathe/study/storages/time_text.h"
#include "lathe/study/storages/trial_notes.h"

namespace lathe::study {
namespace {

// A number as the tables have it: NULL and a word where SQL has no number for it.
struct StoredNumber {
  SqlValue value;
  std::string type;
};

StoredNumber stored(double value) {
  if (std::isnan(value)) return {SqlValue(), "NAN"};
  if (std::isinf(value)) return {SqlValue(), value > 0 ? "INF_POS" : "INF_NEG"};
  return {value, "FINITE"};
}

// Another program may have written anything here; who cannot be read is nobody we know.
Owner parse_owner(const std::string& json) {
  try {
    const nlohmann::json value = parse_json(json);
    if (value.is_string()) return value.get<std::string>();
  } catch (const UserError&) {
  }
  return json;
}

}  // namespace

// In PostgreSQL the statements after the lock see everything that was committed before we had it.
SqlStorage::Holder SqlStorage::lock_trial(TrialId trial) {
  const std::vector<SqlCall> calls = {{&statements_.lock_trial, {trial}},
                                      {&statements_.trial_note, {trial, kOwnerKey}},
                                      {&statements_.trial_note, {trial, kAttemptKey}},
                                      {&statements_.silence, {trial}}};
  const std::vector<SqlResult> found = connection_->run(calls);
  if (found[0].num_rows() == 0) fail("there is no trial with id {}", trial);
  const SqlRow row = found[0].row(0);
  const std::string& state = row.text(1, "trials.state");
  const std::optional<TrialState> parsed = parse_trial_state(state);
  if (!parsed) fail("trials.state is \"{}\"", state);
  Holder holder{.study = row.whole(0, "trials.study_id"), .state = *parsed};
  if (!row.is_null(2)) holder.complete = parse_time(row.text(2, "trials.datetime_complete"));
  if (found[1].num_rows() > 0) holder.owner = parse_owner(found[1].row(0).text(0, "value_json"));
  if (found[2].num_rows() > 0)
    holder.attempt = std::atoi(found[2].row(0).text(0, "value_json").c_str());
  if (found[3].num_rows() > 0) holder.silence_ms = found[3].row(0).whole(0, kHeartbeatKey);
  return holder;
}

void SqlStorage::require_compatible_parameters(StudyId study,
                                               const std::vector<Parameter>& parameters) {
  KnownParameters& known = parameters_[study];
  std::vector<SqlCall> calls;
  for (const Parameter& each : parameters)
    if (!known.contains(each.name))
      calls.push_back({&statements_.known_distribution, {study, each.name}});
  if (!calls.empty()) {
    const std::vector<SqlResult> found = connection_->run(calls);
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (found[i].num_rows() == 0) continue;
      const std::string& json = found[i].row(0).text(0, "trial_params.distribution_json");
      known[std::get<std::string>(calls[i].values[1])] = {distribution(json), json};
    }
  }
  for (const Parameter& each : parameters) {
    const auto found = known.find(each.name);
    if (found == known.end() || found->second.distribution == each.distribution) continue;
    require_compatible(*found->second.distribution, *each.distribution, each.name);
  }
}

void SqlStorage::add_content(TrialId trial, StudyId study, const TrialChange& change,
                             std::vector<SqlCall>& calls) {
  const KnownParameters& known = parameters_[study];
  for (const Parameter& each : change.parameters) {
    if (!std::isfinite(each.value))
      fail("parameter \"{}\" is {}, expected a finite number", each.name, each.value);
    const auto found = known.find(each.name);
    const bool is_known = found != known.end() && found->second.distribution == each.distribution;
    calls.push_back({&statements_.set_parameter,
                     {trial, each.name, each.value,
                      is_known ? found->second.json : to_json(*each.distribution)}});
  }
  for (std::size_t i = 0; i < change.values.size(); ++i) {
    if (std::isnan(change.values[i])) fail("objective {} is not a number", i);
    StoredNumber number = stored(change.values[i]);
    calls.push_back(
        {&statements_.set_value,
         {trial, static_cast<std::int64_t>(i), std::move(number.value), std::move(number.type)}});
  }
  for (const auto& [step, value] : change.intermediate_values) {
    StoredNumber number = stored(value);
    calls.push_back({&statements_.add_intermediate,
                     {trial, static_cast<std::int64_t>(step), std::move(number.value),
                      std::move(number.type)}});
  }
  for (const auto& [key, value] : change.user_attributes)
    calls.push_back({&statements_.set_user, {trial, key, value}});
  for (const auto& [key, value] : change.system_attributes)
    calls.push_back({&statements_.set_system, {trial, key, value}});
}

bool SqlStorage::update(TrialId trial, const Owner& owner, const TrialChange& change) {
  // The time of completion is ours alone, so it also tells our result from another's.
  const Time stamp = now();
  const bool is_release = change.state == TrialState::Waiting;
  const std::string release = is_release ? to_json_text(new_owner()) : "";
  return transact(Access::Write, [&](bool may_be_done) {
    const Holder holder = lock_trial(trial);
    if (may_be_done && is_release) {
      const SqlResult found = connection_->run({&statements_.trial_note, {trial, kReleaseKey}});
      if (found.num_rows() > 0 && found.row(0).text(0, "value_json") == release) return true;
    } else if (may_be_done && change.state) {
      if (holder.state == *change.state && holder.complete == stamp) return true;
    }
    const bool is_free = holder.owner.empty() || !holder.silence_ms;
    if (holder.state != TrialState::Running) return false;
    if (holder.owner != owner && !(owner.empty() && is_free)) return false;

    require_compatible_parameters(holder.study, change.parameters);
    std::vector<SqlCall> calls;
    add_content(trial, holder.study, change, calls);
    if (is_release) {
      std::optional<TrialRecord> record = find_trial(trial);
      check(record.has_value(), "a locked trial to be there");
      apply(change, *record, stamp);
      const std::string fixed = fixed_parameters(*record);
      if (!fixed.empty()) calls.push_back({&statements_.set_system, {trial, kFixedKey, fixed}});
      calls.push_back({&statements_.set_system, {trial, kReleaseKey, release}});
      calls.push_back({&statements_.set_state, {trial, "WAITING"}});
    } else if (change.state) {
      calls.push_back(
          {&statements_.finish_trial, {trial, std::string(name(*change.state)), to_text(stamp)}});
    }
    if (holder.silence_ms)
      calls.push_back(
          {change.state ? &statements_.drop_heartbeat : &statements_.set_heartbeat, {trial}});
    connection_->commit(calls);

    KnownParameters& known = parameters_[holder.study];
    for (const Parameter& each : change.parameters)
      if (!known.contains(each.name))
        known[each.name] = {each.distribution, to_json(*each.distribution)};
    return true;
  });
}

bool SqlStorage::heartbeat(TrialId trial, const Owner& owner) {
  return transact(Access::Write, [&](bool) {
    const Holder holder = lock_trial(trial);
    if (holder.state != TrialState::Running) return false;
    if (holder.owner != owner && !(owner.empty() && !holder.silence_ms)) return false;
    std::vector<SqlCall> calls;
    if (holder.silence_ms) calls.push_back({&statements_.set_heartbeat, {trial}});
    connection_->commit(calls);
    return true;
  });
}

}  // namespace lathe::study
