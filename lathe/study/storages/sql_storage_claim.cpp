// How trials come into a SqlStorage and to their workers.
#include <algorithm>

#include "lathe/study/json_text.h"
#include "lathe/study/storages/sql_storage.h"
#include "lathe/study/storages/time_text.h"
#include "lathe/study/storages/trial_notes.h"

namespace lathe::study {
namespace {

SqlValue time_value(const std::optional<Time>& time) {
  return time ? SqlValue(to_text(*time)) : SqlValue();
}

bool is_same(const TrialRecord& a, const TrialRecord& b) {
  const auto is_same_parameter = [](const Parameter& x, const Parameter& y) {
    return x.name == y.name && x.value == y.value && *x.distribution == *y.distribution;
  };
  // NaN differs from itself, so reports are compared by their steps alone.
  const auto is_same_step = [](const auto& x, const auto& y) { return x.first == y.first; };
  return a.state == b.state && a.values == b.values && a.start == b.start &&
         a.complete == b.complete && a.user_attributes == b.user_attributes &&
         a.system_attributes == b.system_attributes &&
         std::ranges::equal(a.parameters, b.parameters, is_same_parameter) &&
         std::ranges::equal(a.intermediate_values, b.intermediate_values, is_same_step);
}

}  // namespace

TrialRecord SqlStorage::add_trial(StudyId study, const TrialRecord& trial) {
  TrialId tried = 0;
  return transact(Access::Write, [&](bool may_be_done) {
    const std::vector<SqlCall> look = {{&statements_.lock_study, {study}},
                                       {&statements_.last_number, {study}}};
    const std::vector<SqlResult> found = connection_->run(look);
    require_study(found[0], study);
    if (may_be_done) {
      // The number of a trial that was never committed may be given to another's after a crash.
      const std::optional<TrialRecord> there = find_trial(tried);
      if (there && is_same(*there, trial)) return *there;
    }
    require_compatible_parameters(study, trial.parameters);

    TrialRecord added = trial;
    added.number = found[1].num_rows() == 0
                       ? 0
                       : static_cast<int>(found[1].row(0).whole(0, "trials.number")) + 1;
    added.id =
        connection_
            ->run({&statements_.insert_trial,
                   {study, static_cast<std::int64_t>(added.number), std::string(name(trial.state)),
                    time_value(trial.start), time_value(trial.complete)}})
            .row(0)
            .whole(0, "trials.trial_id");
    tried = added.id;
    const TrialChange content{
        .parameters = trial.parameters,
        .intermediate_values = {trial.intermediate_values.begin(), trial.intermediate_values.end()},
        .user_attributes = trial.user_attributes,
        .system_attributes = trial.system_attributes,
        .state = {},
        .values = trial.values};
    std::vector<SqlCall> calls;
    add_content(added.id, study, content, calls);
    connection_->commit(calls);
    return added;
  });
}

// A trial to take, locked, with the number of this attempt; nothing when a new one is due.
std::optional<SqlStorage::Attempt> SqlStorage::find_claimable(StudyId study, const Claim& claim,
                                                              const SqlResult& silent,
                                                              const SqlResult& waiting) {
  if (claim.promote) {
    const Holder holder = lock_trial(*claim.promote);
    if (holder.study == study && holder.state == TrialState::Waiting)
      return Attempt{*claim.promote, holder.attempt + 1};
  }
  const std::int64_t lease = claim.lease.count();
  for (std::size_t i = 0; lease > 0 && i < silent.num_rows(); ++i) {
    if (silent.row(i).whole(1, kHeartbeatKey) <= lease) continue;
    const TrialId trial = silent.row(i).whole(0, "trials.trial_id");
    // Its owner may have come back before we had the lock.
    const Holder holder = lock_trial(trial);
    if (holder.state == TrialState::Running && holder.silence_ms && *holder.silence_ms > lease)
      return Attempt{trial, holder.attempt + 1};
  }
  if (waiting.num_rows() == 0) return {};
  const TrialId trial = waiting.row(0).whole(0, "trials.trial_id");
  return Attempt{trial, lock_trial(trial).attempt + 1};
}

std::vector<SqlCall> SqlStorage::claim_calls(const Attempt& taken, const Claim& claim) const {
  std::vector<SqlCall> calls = {
      {&statements_.set_system, {taken.trial, kOwnerKey, to_json_text(claim.owner)}},
      {&statements_.set_system, {taken.trial, kAttemptKey, std::to_string(taken.attempt)}}};
  if (claim.lease.count() > 0) calls.push_back({&statements_.set_heartbeat, {taken.trial}});
  return calls;
}

std::optional<TrialRecord> SqlStorage::claim(StudyId study, const Claim& claim) {
  Attempt tried;
  return transact(Access::Write, [&](bool may_be_done) -> std::optional<TrialRecord> {
    // In one go with the lock: each statement sees what was committed before it.
    const std::vector<SqlCall> look = {{&statements_.lock_study, {study}},
                                       {&statements_.silent_trials, {study}},
                                       {&statements_.waiting_trial, {study}},
                                       {&statements_.last_number, {study}}};
    const std::vector<SqlResult> found = connection_->run(look);
    require_study(found[0], study);
    if (may_be_done) {
      // After a crash the id may be another's, but not with our name on it.
      std::optional<TrialRecord> there = find_trial(tried.trial);
      if (there && there->state == TrialState::Running) {
        const Holder holder = lock_trial(tried.trial);
        if (holder.owner == claim.owner && holder.attempt == tried.attempt) return there;
      }
    }
    if (const auto taken = find_claimable(study, claim, found[1], found[2])) {
      tried = *taken;
      std::vector<SqlCall> calls = claim_calls(*taken, claim);
      calls.push_back({&statements_.start_trial, {taken->trial, to_text(now())}});
      if (claim.lease.count() == 0) calls.push_back({&statements_.drop_heartbeat, {taken->trial}});
      connection_->run(calls);
      std::optional<TrialRecord> record = find_trial(taken->trial);
      check(record.has_value(), "a locked trial to be there");
      calls.clear();
      if (const auto paused = record->system_attributes.find(kPausedKey);
          paused != record->system_attributes.end() && paused->second == "true") {
        paused->second = "false";
        calls.push_back({&statements_.set_system, {taken->trial, kPausedKey, "false"}});
      }
      connection_->commit(calls);
      return record;
    }

    const int number = found[3].num_rows() == 0
                           ? 0
                           : static_cast<int>(found[3].row(0).whole(0, "trials.number")) + 1;
    if (claim.max_trials && number >= *claim.max_trials) return {};
    TrialRecord record{
        .number = number, .system_attributes = claim.system_attributes, .start = now()};
    tried = {};
    record.id = connection_
                    ->run({&statements_.insert_trial,
                           {study, static_cast<std::int64_t>(number), "RUNNING",
                            to_text(*record.start), SqlValue()}})
                    .row(0)
                    .whole(0, "trials.trial_id");
    tried.trial = record.id;
    std::vector<SqlCall> calls;
    for (const auto& [key, value] : claim.system_attributes)
      calls.push_back({&statements_.set_system, {record.id, key, value}});
    for (SqlCall& call : claim_calls(tried, claim)) calls.push_back(std::move(call));
    connection_->commit(calls);
    record.system_attributes[kOwnerKey] = to_json_text(claim.owner);
    record.system_attributes[kAttemptKey] = "1";
    return record;
  });
}

}  // namespace lathe::study
