#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "lathe/study/trial_record.h"

namespace lathe::study {

/// The operations of a journal, as Optuna numbers them.
enum class JournalOperation {
  CreateStudy,
  DeleteStudy,
  SetStudyUserAttribute,
  SetStudySystemAttribute,
  CreateTrial,
  SetTrialParameter,
  SetTrialStateValues,
  SetTrialIntermediateValue,
  SetTrialUserAttribute,
  SetTrialSystemAttribute,
};

/// What studies and trials there are after the operations of a journal.
///
/// Every process replays the same lines, so all agree on who was first: an operation that comes too
/// late (the name is taken, the trial is finished) has no effect, as with Optuna.
class JournalReplay {
 public:
  struct Study {
    StudyRecord record;
    std::vector<TrialId> trials = {};  // by number
    std::set<TrialId> unfinished = {};
    std::unordered_map<std::string, DistributionPtr> parameters = {};
  };
  struct Trial {
    TrialRecord record;
    StudyId study = 0;
  };

  /// Applies one line; fails when it is not an operation that we know.
  void apply(const std::string& line);

  const std::map<StudyId, Study>& studies() const { return studies_; }
  /// The ids that come next.
  StudyId next_study() const { return next_study_; }
  TrialId next_trial() const { return static_cast<TrialId>(trials_.size()); }
  const Study* find_study(StudyId study) const;
  const Trial* find_trial(TrialId trial) const;

 private:
  void create_study(const nlohmann::json& line);
  void set_study_attribute(const nlohmann::json& line, const char* key,
                           Attributes StudyRecord::*attributes);
  void create_trial(const nlohmann::json& line);
  void set_parameter(const nlohmann::json& line);
  void set_state(const nlohmann::json& line);
  void set_trial_attribute(const nlohmann::json& line, const char* key,
                           Attributes TrialRecord::*attributes);
  /// The trial that an operation may change, or nullptr.
  TrialRecord* changeable(const nlohmann::json& line);
  DistributionPtr distribution(const std::string& json);

  std::map<StudyId, Study> studies_;
  std::vector<Trial> trials_;  // by id
  StudyId next_study_ = 0;
  std::unordered_map<std::string, DistributionPtr> distributions_;
};

}  // namespace lathe::study
