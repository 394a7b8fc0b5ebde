#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lathe/core/error.h"
#include "lathe/study/storages/sql_connection.h"
#include "lathe/study/storages/sql_statements.h"
#include "lathe/study/storages/storage.h"

namespace lathe::study {

/// Studies in the tables of Optuna, in any database that there is a connection for.
///
/// Optuna's tables have no place for owners and leases, so they live where Python leaves them
/// alone: the owner is the system attribute `lathe:owner`, a lease is `lathe:heartbeat`, written
/// with the database's clock and gone when the trial is finished. (Not a row of trial_heartbeats:
/// those are in the time zone of whoever wrote them, and Optuna fails the trials of those it finds
/// late.) Whoever writes to a trial locks its row first, whoever adds one or takes one away locks
/// the study's row: Optuna does the same, so the two exclude each other.
class SqlStorage final : public Storage {
 public:
  using Connect = std::function<std::unique_ptr<SqlConnection>()>;
  /// Creates the tables where there are none.
  SqlStorage(const std::string& description, const Connect& connect);
  std::unique_ptr<Storage> reopen() const override {
    return std::make_unique<SqlStorage>(description_, connect_);
  }

  std::string description() const override { return description_; }
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
  using Access = SqlConnection::Access;

  SqlStorage(const std::string& description, const Connect& connect,
             std::unique_ptr<SqlConnection> connection);

  // What decides who may write to a trial.
  struct Holder {
    StudyId study = 0;
    TrialState state = TrialState::Running;
    std::optional<Time> complete = {};
    Owner owner = {};
    int attempt = 0;
    std::optional<std::int64_t> silence_ms = {};  // nothing: claimed without a lease
  };
  // A parameter as the study knows it.
  struct KnownParameter {
    DistributionPtr distribution;
    std::string json;
  };
  using KnownParameters = std::unordered_map<std::string, KnownParameter>;
  // A trial that a claim tried to take.
  struct Attempt {
    TrialId trial = 0;
    int attempt = 1;
  };

  /// Runs `body` in a transaction until it comes through. It gets true when an earlier run may have
  /// been committed without our hearing of it, and then has to find out before it writes.
  template <typename Body>
  auto transact(Access access, Body&& body) {
    return with_place(description_, [&] {
      bool may_be_done = false;
      double waited_s = 0;
      for (;;) {
        try {
          connection_->begin(access);
          auto result = body(may_be_done);
          connection_->rollback();  // does nothing after a commit
          return result;
        } catch (const SqlInterruption& interruption) {
          may_be_done = may_be_done || interruption.may_be_committed;
          recover(interruption, waited_s);
        } catch (...) {
          connection_->rollback();
          throw;
        }
      }
    });
  }
  void recover(const SqlInterruption& interruption, double& waited_s);

  void require_study(const SqlResult& found, StudyId study) const;
  StudyRecord read_study(StudyId study);

  Holder lock_trial(TrialId trial);
  std::optional<Attempt> find_claimable(StudyId study, const Claim& claim, const SqlResult& silent,
                                        const SqlResult& waiting);
  std::vector<SqlCall> claim_calls(const Attempt& taken, const Claim& claim) const;

  void require_compatible_parameters(StudyId study, const std::vector<Parameter>& parameters);
  void add_content(TrialId trial, StudyId study, const TrialChange& change,
                   std::vector<SqlCall>& calls);

  TrialRecord read_trial(const SqlRow& row) const;
  void read_content(std::span<TrialRecord> trials);
  std::optional<TrialRecord> find_trial(TrialId trial);
  DistributionPtr distribution(const std::string& json);

  std::string description_;
  Connect connect_;
  SqlStatements statements_;
  // After the statements that it knows by address.
  std::unique_ptr<SqlConnection> connection_;
  std::map<StudyId, KnownParameters> parameters_;
  // Trials repeat their distributions, so each text is read once.
  std::unordered_map<std::string, DistributionPtr> distributions_;
};

}  // namespace lathe::study
