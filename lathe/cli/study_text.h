#pragma once

#include <map>
#include <string>
#include <vector>

#include "lathe/cli/study_arguments.h"

namespace lathe::cli {

/// `minimize` and `maximize`, for people.
std::vector<std::string> direction_names(const std::vector<study::Direction>& directions);
/// The same behind the objectives' names, where they have some: `maximize accuracy`.
std::vector<std::string> objective_texts(const study::StudyRecord& study);
/// How many trials are in each state.
std::map<study::TrialState, int> count_states(const study::History& history);
/// The best value, or how many trials the front has; "-" without any.
std::string best_text(const StoredStudy& study);

}  // namespace lathe::cli
