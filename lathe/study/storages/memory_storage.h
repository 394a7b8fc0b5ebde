#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lathe/study/storages/storage.h"

namespace lathe::study {

/// Studies that end with the process. Threads may share one, since nothing else could.
class MemoryStorage final : public Storage {
 public:
  /// `clock` tells the time for leases.
  explicit MemoryStorage(std::function<Time()> clock = now) : clock_(std::move(clock)) {}

  std::unique_ptr<Storage> reopen() const override { return nullptr; }
  std::string description() const override { return "memory"; }
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
  struct StoredTrial {
    TrialRecord record;
    Owner owner;                     // of a running trial; empty: nobody in particular
    std::optional<Time> heard = {};  // nothing: claimed without a lease
  };
  struct StoredStudy {
    StudyRecord record;
    std::vector<StoredTrial> trials = {};  // by number
    std::vector<int> open = {};            // numbers of those that are not finished, ascending
    std::unordered_map<std::string, DistributionPtr> distributions = {};
  };
  struct Place {
    StudyId study;
    int number;
  };

  StoredStudy& at(StudyId study);
  StoredTrial& add(StoredStudy& study, TrialRecord record);
  StoredTrial* find_claimable(StoredStudy& study, const Claim& claim);
  void require_compatible_parameters(StoredStudy& study, const std::vector<Parameter>& parameters);
  /// The trial if `owner` may write to it, else nullptr.
  StoredTrial* writable(TrialId trial, const Owner& owner);

  std::function<Time()> clock_;
  std::mutex mutex_;
  std::map<StudyId, StoredStudy> studies_;
  std::map<std::string, StudyId, std::less<>> names_;
  std::unordered_map<TrialId, Place> places_;
  StudyId last_study_ = 0;
  TrialId last_trial_ = 0;
};

}  // namespace lathe::study
