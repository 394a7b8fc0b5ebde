// `journal:///FILE`: Optuna's log of operations, for disks that machines share.
//
// A call takes the lock, reads what others appended, decides, and appends its own lines: the last
// of them is the one that counts, so that a process which dies halfway has changed nothing that
// matters. The lease of a trial is the system attribute `lathe:heartbeat`, in milliseconds of the
// file system's clock.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/study/json_text.h"
#include "lathe/study/storages/journal_file.h"
#include "lathe/study/storages/journal_replay.h"
#include "lathe/study/storages/storage.h"
#include "lathe/study/storages/time_text.h"
#include "lathe/study/storages/trial_notes.h"

namespace lathe::study {
namespace {

using nlohmann::json;

json json_of(const Attributes& attributes) {
  json result = json::object();
  for (const auto& [key, value] : attributes) result[key] = parse_json(value);
  return result;
}

std::int64_t milliseconds_of(Time time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

// When the trial was last heard of; nothing when it was claimed without a lease.
std::optional<std::int64_t> heard(const TrialRecord& trial) {
  const std::string text = note(trial, kHeartbeatKey);
  if (text.empty() || text == "null") return {};
  return std::strtoll(text.c_str(), nullptr, 10);
}

class JournalStorage final : public Storage {
 public:
  JournalStorage(std::string url, const std::string& path)
      : url_(std::move(url)),
        path_(path),
        file_(with_place(url_, [&] { return JournalFile(path); })),
        worker_(new_owner()) {
    with_place(url_, [&] { sync(); });
  }

  std::unique_ptr<Storage> reopen() const override {
    return std::make_unique<JournalStorage>(url_, path_);
  }
  std::string description() const override { return url_; }
  StudyId create_study(const std::string& name, const std::vector<Direction>& directions,
                       const Attributes& user_attributes,
                       const Attributes& system_attributes) override;
  std::optional<StudyId> find_study(std::string_view name) override;
  std::vector<StudyRecord> studies() override;
  StudyRecord study(StudyId study) override;
  void delete_study(StudyId study) override;
  void set_study_attributes(StudyId study, const Attributes& user_attributes,
                            const Attributes& system_attributes) override;
  TrialRecord add_trial(StudyId study, const TrialRecord& trial) override;
  std::optional<TrialRecord> claim(StudyId study, const Claim& claim) override;
  bool update(TrialId trial, const Owner& owner, const TrialChange& change) override;
  bool heartbeat(TrialId trial, const Owner& owner) override;
  void refresh(StudyId study, std::vector<TrialRecord>& known) override;

 private:
  using Operation = JournalOperation;

  // Runs `body` with the lock and everything read. It gets the lines to fill and the time.
  template <typename Body>
  auto change(Body&& body) {
    return with_place(url_, [&] {
      while (true) {
        const JournalFile::Lock lock = file_.lock();
        sync();
        lines_.clear();
        auto result = body(lock.time());
        if (!lines_.empty() && !file_.append(lock, lines_)) continue;  // we slept for too long
        sync();
        return result;
      }
    });
  }
  template <typename Body>
  auto read(Body&& body) {
    return with_place(url_, [&] {
      sync();
      return body();
    });
  }
  void sync();
  void write(Operation operation, json fields) {
    fields["op_code"] = static_cast<int>(operation);
    fields["worker_id"] = worker_;
    lines_.push_back(to_json_text(fields));
  }
  void write_note(TrialId trial, const char* key, json value) {
    write(Operation::SetTrialSystemAttribute,
          {{"trial_id", trial}, {"system_attr", {{key, std::move(value)}}}});
  }
  void write_attributes(Operation operation, const char* id, std::int64_t value, const char* field,
                        const Attributes& attributes) {
    for (const auto& [key, text] : attributes)
      write(operation, {{id, value}, {field, {{key, parse_json(text)}}}});
  }
  void write_state(const TrialRecord& trial, TrialState state, const std::vector<double>& values);
  const JournalReplay::Study& at(StudyId study) const {
    const JournalReplay::Study* found = replay_.find_study(study);
    if (found == nullptr) fail("there is no study {}", study);
    return *found;
  }
  const TrialRecord* find_claimable(StudyId study, const Claim& claim, std::int64_t time) const;
  const TrialRecord* writable(TrialId trial, const Owner& owner) const;
  static void require_compatible_parameters(const JournalReplay::Study& study,
                                            const std::vector<Parameter>& parameters);

  std::string url_, path_;
  JournalFile file_;
  JournalReplay replay_;
  std::string worker_;
  std::vector<std::string> lines_;
};

void JournalStorage::sync() {
  const std::int64_t before = file_.num_read();
  const std::vector<std::string> lines = file_.read_new();
  for (std::size_t i = 0; i < lines.size(); ++i)
    with_place(fmt::format("line {}", before + static_cast<std::int64_t>(i) + 1),
               [&] { replay_.apply(lines[i]); });
}

StudyId JournalStorage::create_study(const std::string& name,
                                     const std::vector<Direction>& directions,
                                     const Attributes& user_attributes,
                                     const Attributes& system_attributes) {
  change([&](Time) {
    for (const auto& [known, study] : replay_.studies())
      if (study.record.name == name) fail("there is already a study \"{}\"", name);
    json numbers = json::array();
    for (const Direction each : directions) numbers.push_back(each == Direction::Minimize ? 1 : 2);
    write(Operation::CreateStudy, {{"study_name", name}, {"directions", numbers}});
    const StudyId id = replay_.next_study();
    write_attributes(Operation::SetStudyUserAttribute, "study_id", id, "user_attr",
                     user_attributes);
    write_attributes(Operation::SetStudySystemAttribute, "study_id", id, "system_attr",
                     system_attributes);
    return true;
  });
  return *find_study(name);
}

std::optional<StudyId> JournalStorage::find_study(std::string_view name) {
  return read([&]() -> std::optional<StudyId> {
    for (const auto& [id, study] : replay_.studies())
      if (study.record.name == name) return id;
    return {};
  });
}

std::vector<StudyRecord> JournalStorage::studies() {
  return read([&] {
    std::vector<StudyRecord> result;
    for (const auto& [id, study] : replay_.studies()) result.push_back(study.record);
    return result;
  });
}

StudyRecord JournalStorage::study(StudyId study) {
  return read([&] { return at(study).record; });
}

void JournalStorage::delete_study(StudyId study) {
  change([&](Time) {
    at(study);
    write(Operation::DeleteStudy, {{"study_id", study}});
    return true;
  });
}

void JournalStorage::set_study_attributes(StudyId study, const Attributes& user_attributes,
                                          const Attributes& system_attributes) {
  change([&](Time) {
    at(study);
    write_attributes(Operation::SetStudyUserAttribute, "study_id", study, "user_attr",
                     user_attributes);
    write_attributes(Operation::SetStudySystemAttribute, "study_id", study, "system_attr",
                     system_attributes);
    return true;
  });
}

void JournalStorage::require_compatible_parameters(const JournalReplay::Study& study,
                                                   const std::vector<Parameter>& parameters) {
  for (const Parameter& each : parameters) {
    if (!std::isfinite(each.value))
      fail("parameter \"{}\" is {}, expected a finite number", each.name, each.value);
    const auto known = study.parameters.find(each.name);
    if (known != study.parameters.end())
      require_compatible(*known->second, *each.distribution, each.name);
  }
}

TrialRecord JournalStorage::add_trial(StudyId study, const TrialRecord& trial) {
  const TrialId id = change([&](Time) {
    require_compatible_parameters(at(study), trial.parameters);
    json line = {{"study_id", study},
                 {"state", static_cast<int>(trial.state)},
                 {"value", nullptr},
                 {"values", nullptr},
                 {"datetime_start", nullptr},
                 {"distributions", json::object()},
                 {"params", json::object()},
                 {"user_attrs", json_of(trial.user_attributes)},
                 {"system_attrs", json_of(trial.system_attributes)},
                 {"intermediate_values", json::object()}};
    if (trial.values.size() == 1) line["value"] = trial.values.front();
    if (trial.values.size() > 1) line["values"] = trial.values;
    if (trial.start) line["datetime_start"] = to_text(*trial.start, 'T');
    if (trial.complete) line["datetime_complete"] = to_text(*trial.complete, 'T');
    for (const Parameter& each : trial.parameters) {
      line["distributions"][each.name] = to_json(*each.distribution);
      line["params"][each.name] = each.value;
    }
    for (const auto& [step, value] : trial.intermediate_values)
      line["intermediate_values"][std::to_string(step)] = value;
    write(Operation::CreateTrial, std::move(line));
    return replay_.next_trial();
  });
  return replay_.find_trial(id)->record;
}

void JournalStorage::write_state(const TrialRecord& trial, TrialState state,
                                 const std::vector<double>& values) {
  json line = {{"trial_id", trial.id}, {"state", static_cast<int>(state)}, {"values", nullptr}};
  if (!values.empty()) line["values"] = values;
  if (state == TrialState::Running)
    line["datetime_start"] = to_text(trial.start.value_or(now()), 'T');
  if (is_finished(state)) line["datetime_complete"] = to_text(now(), 'T');
  write(Operation::SetTrialStateValues, std::move(line));
}

const TrialRecord* JournalStorage::find_claimable(StudyId study, const Claim& claim,
                                                  std::int64_t time) const {
  if (claim.promote) {
    const JournalReplay::Trial* promoted = replay_.find_trial(*claim.promote);
    if (promoted != nullptr && promoted->study == study &&
        promoted->record.state == TrialState::Waiting)
      return &promoted->record;
  }
  const TrialRecord* waiting = nullptr;
  for (const TrialId id : at(study).unfinished) {
    const TrialRecord& trial = replay_.find_trial(id)->record;
    if (trial.state == TrialState::Running && claim.lease.count() > 0) {
      const std::optional<std::int64_t> last = heard(trial);
      if (last && time - *last > claim.lease.count()) return &trial;
    }
    if (waiting == nullptr && trial.state == TrialState::Waiting &&
        note(trial, kPausedKey) != "true")
      waiting = &trial;
  }
  return waiting;
}

std::optional<TrialRecord> JournalStorage::claim(StudyId study, const Claim& claim) {
  const std::optional<TrialId> id = change([&](Time time) -> std::optional<TrialId> {
    const std::int64_t milliseconds = milliseconds_of(time);
    const json heartbeat = claim.lease.count() > 0 ? json(milliseconds) : json(nullptr);
    if (const TrialRecord* taken = find_claimable(study, claim, milliseconds)) {
      write_note(taken->id, kAttemptKey, std::atoi(note(*taken, kAttemptKey).c_str()) + 1);
      if (claim.lease.count() > 0 || heard(*taken)) write_note(taken->id, kHeartbeatKey, heartbeat);
      if (note(*taken, kPausedKey) == "true") write_note(taken->id, kPausedKey, false);
      write_note(taken->id, kOwnerKey, claim.owner);
      if (taken->state == TrialState::Waiting) write_state(*taken, TrialState::Running, {});
      return taken->id;
    }
    if (claim.max_trials && static_cast<int>(at(study).trials.size()) >= *claim.max_trials)
      return {};
    json notes = json_of(claim.system_attributes);
    notes[kOwnerKey] = claim.owner;
    notes[kAttemptKey] = 1;
    if (claim.lease.count() > 0) notes[kHeartbeatKey] = heartbeat;
    write(Operation::CreateTrial, {{"study_id", study},
                                   {"datetime_start", to_text(now(), 'T')},
                                   {"state", static_cast<int>(TrialState::Running)},
                                   {"system_attrs", std::move(notes)}});
    return replay_.next_trial();
  });
  if (!id) return {};
  return replay_.find_trial(*id)->record;
}

const TrialRecord* JournalStorage::writable(TrialId trial, const Owner& owner) const {
  const JournalReplay::Trial* found = replay_.find_trial(trial);
  if (found == nullptr || replay_.find_study(found->study) == nullptr)
    fail("there is no trial with id {}", trial);
  const TrialRecord& record = found->record;
  if (record.state != TrialState::Running) return nullptr;
  const std::string holder = note(record, kOwnerKey);
  if (!owner.empty()) return holder == to_json_text(owner) ? &record : nullptr;
  return holder.empty() || !heard(record) ? &record : nullptr;
}

bool JournalStorage::update(TrialId trial, const Owner& owner, const TrialChange& wanted) {
  return change([&](Time time) {
    const TrialRecord* record = writable(trial, owner);
    if (record == nullptr) return false;
    require_compatible_parameters(at(replay_.find_trial(trial)->study), wanted.parameters);
    for (std::size_t i = 0; i < wanted.values.size(); ++i)
      if (std::isnan(wanted.values[i])) fail("objective {} is not a number", i);

    for (const Parameter& each : wanted.parameters)
      write(Operation::SetTrialParameter, {{"trial_id", trial},
                                           {"param_name", each.name},
                                           {"param_value_internal", each.value},
                                           {"distribution", to_json(*each.distribution)}});
    for (const auto& [step, value] : wanted.intermediate_values)
      if (!record->intermediate_values.contains(step))
        write(Operation::SetTrialIntermediateValue,
              {{"trial_id", trial}, {"step", step}, {"intermediate_value", value}});
    write_attributes(Operation::SetTrialUserAttribute, "trial_id", trial, "user_attr",
                     wanted.user_attributes);
    write_attributes(Operation::SetTrialSystemAttribute, "trial_id", trial, "system_attr",
                     wanted.system_attributes);
    if (heard(*record) && !wanted.state) write_note(trial, kHeartbeatKey, milliseconds_of(time));
    if (wanted.state == TrialState::Waiting) {
      TrialRecord after = *record;
      apply(wanted, after, now());
      const std::string fixed = fixed_parameters(after);
      if (!fixed.empty()) write_note(trial, kFixedKey, parse_json(fixed));
    }
    if (wanted.state) write_state(*record, *wanted.state, wanted.values);
    return true;
  });
}

bool JournalStorage::heartbeat(TrialId trial, const Owner& owner) {
  return change([&](Time time) {
    const TrialRecord* record = writable(trial, owner);
    if (record != nullptr && heard(*record))
      write_note(trial, kHeartbeatKey, milliseconds_of(time));
    return record != nullptr;
  });
}

void JournalStorage::refresh(StudyId study, std::vector<TrialRecord>& known) {
  read([&] {
    const JournalReplay::Study& stored = at(study);
    for (TrialRecord& each : known)
      if (!is_finished(each.state)) each = replay_.find_trial(each.id)->record;
    for (std::size_t i = known.size(); i < stored.trials.size(); ++i)
      known.push_back(replay_.find_trial(stored.trials[i])->record);
    return true;
  });
}

std::unique_ptr<Storage> open_journal(const std::string& url) {
  constexpr std::string_view kPrefix = "journal:///";
  if (!url.starts_with(kPrefix)) fail("{}: expected journal:///FILE", url);
  return std::make_unique<JournalStorage>(url, url.substr(kPrefix.size()));
}

const Register journal_storage{StorageKind{
    .name = "journal",
    .summary = "journal:///FILE: Optuna's log of operations, for disks that machines share",
    .open = open_journal,
}};

}  // namespace
}  // namespace lathe::study
