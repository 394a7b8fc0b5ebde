#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lathe/study/distribution.h"

namespace lathe::study {

using StudyId = std::int64_t;
using TrialId = std::int64_t;
/// Since 1970 in UTC, to the microsecond, as the storages keep it.
using Time = std::chrono::sys_time<std::chrono::microseconds>;

enum class Direction { Minimize, Maximize };
enum class TrialState { Running, Complete, Pruned, Fail, Waiting };

/// `RUNNING`, `COMPLETE`, `PRUNED`, `FAIL`, `WAITING`, as Optuna writes them.
std::string_view name(TrialState state);
std::optional<TrialState> parse_trial_state(std::string_view name);
inline bool is_finished(TrialState state) {
  return state != TrialState::Running && state != TrialState::Waiting;
}

/// Keys to values in JSON text, kept as text: Python's NaN and Infinity are legal in it.
using Attributes = std::map<std::string, std::string, std::less<>>;

struct Parameter {
  std::string name;
  DistributionPtr distribution;
  double value = 0;  ///< internal form
};

/// Everything a study knows about one trial.
struct TrialRecord {
  TrialId id = 0;
  int number = 0;  ///< 0, 1, 2, ... within the study, without gaps
  TrialState state = TrialState::Running;
  std::vector<double> values = {};         ///< one per objective; empty unless complete (or pruned)
  std::vector<Parameter> parameters = {};  ///< in the order they were asked for
  std::map<int, double> intermediate_values = {};
  Attributes user_attributes = {};
  Attributes system_attributes = {};
  std::optional<Time> start = {};
  std::optional<Time> complete = {};

  /// The parameter of that name, or nullptr.
  const Parameter* find(std::string_view parameter) const;
};

/// What is written to a trial, all of it in one transaction.
struct TrialChange {
  std::vector<Parameter> parameters = {};
  std::vector<std::pair<int, double>> intermediate_values = {};  ///< the first of a step stays
  Attributes user_attributes = {};
  Attributes system_attributes = {};
  std::optional<TrialState> state = {};  ///< Complete, Pruned, Fail, or Waiting to hand it back
  std::vector<double> values = {};
};

/// Does to a record what a storage does to the stored trial.
void apply(const TrialChange& change, TrialRecord& record, Time now);

/// Whether the trial waits for its promotion (system attribute `lathe:paused`), not for a worker.
bool is_paused(const TrialRecord& trial);

/// Now, in the resolution of the storages.
Time now();

/// What a trial reported at a step, one per objective: the intermediate value and, for several
/// objectives, the system attribute `lathe:report:STEP`.
std::vector<double> report_at(const TrialRecord& trial, int step);
std::string report_key(int step);

/// The trial's constraints (system attribute `constraints`, as Optuna has it), each kept where it
/// is not above zero; empty when it has none. Reads JSON: remember the answer for finished trials.
std::vector<double> constraints(const TrialRecord& trial);
/// The sum of what is above zero; NaN counts as infinitely much.
double violation(const TrialRecord& trial);
inline bool is_feasible(const TrialRecord& trial) {
  return violation(trial) == 0;
}

/// A study without its trials.
struct StudyRecord {
  StudyId id = 0;
  std::string name;
  std::vector<Direction> directions;
  Attributes user_attributes = {};
  Attributes system_attributes = {};
};

}  // namespace lathe::study
