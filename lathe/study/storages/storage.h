#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/study/trial_record.h"

namespace lathe::study {

/// Who works on a trial: a text no other worker uses. Kept as the system attribute
/// `lathe:owner` of a running trial.
using Owner = std::string;
Owner new_owner();

/// How a worker takes a trial.
struct Claim {
  Owner owner;
  /// A running trial that was not heard of for so long belongs to nobody: its owner is taken for
  /// dead and the trial, with its parameters, reports and attributes, goes to the next who asks.
  /// Zero: trials are never taken away, and this worker sends no heartbeats.
  std::chrono::milliseconds lease{0};
  /// The study holds at most so many trials; nothing: no limit.
  std::optional<int> max_trials = {};
  /// Take this paused trial, if it still waits, before looking at others.
  std::optional<TrialId> promote = {};
  /// Written to the trial if it is a new one.
  Attributes system_attributes = {};
};

/// Where studies live. Every call is one transaction: it happens wholly or not at all, also when
/// the process or the server dies in the middle, and an owner that lost its trial is refused.
///
/// Failures that the user can fix (unreachable, wrong schema, a name taken) are UserErrors that
/// begin with the storage's own description. An instance belongs to one thread.
class Storage {
 public:
  virtual ~Storage() = default;

  /// The same place for another thread; nothing when threads may share this one.
  virtual std::unique_ptr<Storage> reopen() const = 0;

  /// Where it is, for messages: `sqlite:///studies.db`. Never shows a password.
  virtual std::string description() const = 0;

  /// Fails when the name is taken.
  virtual StudyId create_study(const std::string& name, const std::vector<Direction>& directions,
                               const Attributes& user_attributes,
                               const Attributes& system_attributes) = 0;
  virtual std::optional<StudyId> find_study(std::string_view name) = 0;
  virtual std::vector<StudyRecord> studies() = 0;
  virtual StudyRecord study(StudyId study) = 0;
  virtual void delete_study(StudyId study) = 0;
  virtual void set_study_attributes(StudyId study, const Attributes& user_attributes,
                                    const Attributes& system_attributes) = 0;

  /// Adds a trial as it is given (its id and number are chosen here): one that waits to be taken,
  /// or a finished one from elsewhere.
  virtual TrialRecord add_trial(StudyId study, const TrialRecord& trial) = 0;
  /// Takes a trial for a worker: the one to promote, else one whose lease has run out, else one
  /// that waits, else a new one; nothing when `max_trials` are there already. What is left of an
  /// earlier owner (parameters, reports, attributes) comes with it, and the system attribute
  /// `lathe:attempt` counts how often it was taken: 1 the first time. A waiting trial whose system
  /// attribute `lathe:paused` is `true` waits for its promotion, which makes it `false`.
  virtual std::optional<TrialRecord> claim(StudyId study, const Claim& claim) = 0;
  /// Writes to a running trial and renews its lease; false, with nothing written, when it is
  /// finished, waiting or another's. An empty owner may write to any running trial that has no
  /// owner or that was claimed without a lease. Fails when a parameter is not compatible with what
  /// the study has
  /// (`require_compatible`).
  virtual bool update(TrialId trial, const Owner& owner, const TrialChange& change) = 0;
  /// Renews the lease; false when the trial is finished or another's.
  virtual bool heartbeat(TrialId trial, const Owner& owner) = 0;

  /// The trials of the study that are new or may have changed since `known` was read: `known`
  /// becomes what the storage holds, ordered by number. Finished trials never change, so they are
  /// read once.
  virtual void refresh(StudyId study, std::vector<TrialRecord>& known) = 0;
};

/// Opens what a URL names: `memory:`, `sqlite:///file.db`, `postgresql://user@host/base`,
/// `journal:///file.log`, or a plain path ending in .db, .sqlite or .log. Creates the tables where
/// there are none.
std::unique_ptr<Storage> open_storage(const std::string& url);

/// A kind of storage, registered by its own file under the scheme of its URLs.
struct StorageKind {
  std::string name;     ///< `sqlite`
  std::string summary;  ///< `sqlite:///FILE: one file in Optuna's schema`
  std::unique_ptr<Storage> (*open)(const std::string& url);
};

}  // namespace lathe::study
