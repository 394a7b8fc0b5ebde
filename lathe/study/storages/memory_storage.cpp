#include "lathe/study/storages/memory_storage.h"

#include <algorithm>

#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/study/json_text.h"

namespace lathe::study {
namespace {

void merge(const Attributes& from, Attributes& into) {
  for (const auto& [key, value] : from) into[key] = value;
}

// How often the trial was taken so far; what cannot be read counts as never.
int attempts(const TrialRecord& trial) {
  const auto found = trial.system_attributes.find("lathe:attempt");
  return found == trial.system_attributes.end() ? 0 : std::atoi(found->second.c_str());
}

}  // namespace

MemoryStorage::StoredStudy& MemoryStorage::at(StudyId study) {
  const auto found = studies_.find(study);
  if (found == studies_.end()) fail("{}: there is no study {}", description(), study);
  return found->second;
}

StudyId MemoryStorage::create_study(const std::string& name,
                                    const std::vector<Direction>& directions,
                                    const Attributes& user_attributes,
                                    const Attributes& system_attributes) {
  const std::scoped_lock lock(mutex_);
  if (names_.contains(name)) fail("{}: there is already a study \"{}\"", description(), name);
  const StudyId id = ++last_study_;
  studies_[id].record = {.id = id,
                         .name = name,
                         .directions = directions,
                         .user_attributes = user_attributes,
                         .system_attributes = system_attributes};
  names_[name] = id;
  return id;
}

std::optional<StudyId> MemoryStorage::find_study(std::string_view name) {
  const std::scoped_lock lock(mutex_);
  const auto found = names_.find(name);
  return found == names_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<StudyRecord> MemoryStorage::studies() {
  const std::scoped_lock lock(mutex_);
  std::vector<StudyRecord> result;
  for (const auto& [id, stored] : studies_) result.push_back(stored.record);
  return result;
}

StudyRecord MemoryStorage::study(StudyId study) {
  const std::scoped_lock lock(mutex_);
  return at(study).record;
}

void MemoryStorage::delete_study(StudyId study) {
  const std::scoped_lock lock(mutex_);
  const StoredStudy& stored = at(study);
  for (const StoredTrial& trial : stored.trials) places_.erase(trial.record.id);
  names_.erase(stored.record.name);
  studies_.erase(study);
}

void MemoryStorage::set_study_attributes(StudyId study, const Attributes& user_attributes,
                                         const Attributes& system_attributes) {
  const std::scoped_lock lock(mutex_);
  StudyRecord& record = at(study).record;
  merge(user_attributes, record.user_attributes);
  merge(system_attributes, record.system_attributes);
}

void MemoryStorage::require_compatible_parameters(StoredStudy& study,
                                                  const std::vector<Parameter>& parameters) {
  for (const Parameter& each : parameters) {
    const auto [known, is_new] = study.distributions.try_emplace(each.name, each.distribution);
    if (is_new || known->second == each.distribution) continue;
    require_compatible(*known->second, *each.distribution, each.name);
  }
}

MemoryStorage::StoredTrial& MemoryStorage::add(StoredStudy& study, TrialRecord record) {
  record.id = ++last_trial_;
  record.number = static_cast<int>(study.trials.size());
  places_[record.id] = {study.record.id, record.number};
  if (!is_finished(record.state)) study.open.push_back(record.number);
  study.trials.push_back({.record = std::move(record), .owner = {}});
  return study.trials.back();
}

TrialRecord MemoryStorage::add_trial(StudyId study, const TrialRecord& trial) {
  const std::scoped_lock lock(mutex_);
  StoredStudy& stored = at(study);
  require_compatible_parameters(stored, trial.parameters);
  return add(stored, trial).record;
}

MemoryStorage::StoredTrial* MemoryStorage::find_claimable(StoredStudy& study, const Claim& claim) {
  const auto trial = [&](int number) { return &study.trials[static_cast<std::size_t>(number)]; };
  if (claim.promote) {
    const auto place = places_.find(*claim.promote);
    if (place != places_.end() && place->second.study == study.record.id) {
      StoredTrial* promoted = trial(place->second.number);
      if (promoted->record.state == TrialState::Waiting) return promoted;
    }
  }
  if (claim.lease.count() > 0) {
    const Time deadline = clock_() - claim.lease;
    for (const int number : study.open) {
      StoredTrial* each = trial(number);
      if (each->record.state == TrialState::Running && each->heard && *each->heard < deadline)
        return each;
    }
  }
  for (const int number : study.open) {
    StoredTrial* each = trial(number);
    if (each->record.state == TrialState::Waiting && !is_paused(each->record)) return each;
  }
  return nullptr;
}

std::optional<TrialRecord> MemoryStorage::claim(StudyId study, const Claim& claim) {
  const std::scoped_lock lock(mutex_);
  StoredStudy& stored = at(study);
  StoredTrial* trial = find_claimable(stored, claim);
  if (trial == nullptr) {
    if (claim.max_trials && static_cast<int>(stored.trials.size()) >= *claim.max_trials) return {};
    trial = &add(stored, {.system_attributes = claim.system_attributes});
  }
  TrialRecord& record = trial->record;
  if (is_paused(record)) record.system_attributes["lathe:paused"] = "false";
  record.state = TrialState::Running;
  if (!record.start) record.start = clock_();
  record.system_attributes["lathe:attempt"] = std::to_string(attempts(record) + 1);
  record.system_attributes["lathe:owner"] = to_json_text(claim.owner);
  trial->owner = claim.owner;
  trial->heard = claim.lease.count() > 0 ? std::optional(clock_()) : std::nullopt;
  return record;
}

MemoryStorage::StoredTrial* MemoryStorage::writable(TrialId trial, const Owner& owner) {
  const auto place = places_.find(trial);
  if (place == places_.end()) fail("{}: there is no trial with id {}", description(), trial);
  StoredTrial& stored =
      at(place->second.study).trials[static_cast<std::size_t>(place->second.number)];
  if (stored.record.state != TrialState::Running) return nullptr;
  const bool is_free = stored.owner.empty() || !stored.heard;
  return stored.owner == owner || (owner.empty() && is_free) ? &stored : nullptr;
}

bool MemoryStorage::update(TrialId trial, const Owner& owner, const TrialChange& change) {
  const std::scoped_lock lock(mutex_);
  StoredTrial* stored = writable(trial, owner);
  if (stored == nullptr) return false;
  StoredStudy& study = at(places_.at(trial).study);
  require_compatible_parameters(study, change.parameters);
  apply(change, stored->record, clock_());
  if (stored->heard) stored->heard = clock_();
  if (stored->record.state == TrialState::Running) return true;
  stored->owner.clear();
  stored->heard.reset();
  if (is_finished(stored->record.state)) std::erase(study.open, stored->record.number);
  return true;
}

bool MemoryStorage::heartbeat(TrialId trial, const Owner& owner) {
  const std::scoped_lock lock(mutex_);
  StoredTrial* stored = writable(trial, owner);
  if (stored == nullptr) return false;
  if (stored->heard) stored->heard = clock_();
  return true;
}

void MemoryStorage::refresh(StudyId study, std::vector<TrialRecord>& known) {
  const std::scoped_lock lock(mutex_);
  const StoredStudy& stored = at(study);
  for (TrialRecord& each : known)
    if (!is_finished(each.state))
      each = stored.trials[static_cast<std::size_t>(each.number)].record;
  for (std::size_t i = known.size(); i < stored.trials.size(); ++i)
    known.push_back(stored.trials[i].record);
}

namespace {

const Register memory_storage{StorageKind{
    .name = "memory",
    .summary = "memory: nothing is kept when the process ends",
    .open = [](const std::string&) -> std::unique_ptr<Storage> {
      return std::make_unique<MemoryStorage>();
    },
}};

}  // namespace
}  // namespace lathe::study
