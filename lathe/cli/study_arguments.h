#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lathe/cli/command.h"
#include "lathe/study/study.h"

namespace lathe::cli {

/// What every `lathe study` command has: where studies are kept, and which one is meant.
struct StudyArguments {
  std::string study = {};
  std::string storage = "sqlite:///lathe-studies.db";
};

/// Adds --study and --storage, which may stand in the environment as LATHE_STUDY and
/// LATHE_STORAGE.
void add_study_options(Flags flags, StudyArguments& arguments, bool is_study_required = true);

/// Opens the storage; fails when it is a file that is not there, unless it `may_be_new`.
std::shared_ptr<study::Storage> open_storage(const StudyArguments& arguments,
                                             bool may_be_new = false);

/// Fails, with the nearest name, when the storage has no study of that name.
study::StudyId require_study(study::Storage& storage, const std::string& name);

/// Opens the study to work on it; fails when there is none.
study::Study open_study(const StudyArguments& arguments, study::StudyOptions options = {});

/// A study to look at: reading writes nothing, not even to a study from elsewhere.
struct StoredStudy {
  std::shared_ptr<study::Storage> storage;
  study::StudyRecord record;
  study::History history;
  std::optional<study::Space> space = {};

  /// A setting that the study keeps (`sampler`, `pruner`, `seed`), or "-".
  std::string setting(std::string_view name) const;
  /// The numbers of the trials that nothing beats: the best one, or the Pareto front of several
  /// objectives. Infeasible ones are left out.
  std::vector<int> best() const;
};
StoredStudy read_study(const StudyArguments& arguments);
StoredStudy read_study(std::shared_ptr<study::Storage> storage, study::StudyId id);

/// Reads "30s", "500ms", "2m", "1h" or a number of seconds; fails naming `flag`.
std::chrono::milliseconds parse_duration(std::string_view flag, std::string_view text);

study::Direction parse_direction(std::string_view text);
std::string_view direction_name(study::Direction direction);

/// The trial of that number; fails when there is none.
const study::TrialRecord& find_trial(const study::StudyRecord& study, const study::History& history,
                                     int number);

/// The names of all parameters that the space or the trials have, in order of appearance.
std::vector<std::string> parameter_names(const study::Space* space, const study::History& history);

}  // namespace lathe::cli
