#pragma once

#include <string>
#include <vector>

#include "lathe/study/trial_record.h"

namespace lathe::study {

/// The names of the study's objectives in order, as Optuna keeps them too (its metric names); empty
/// where they have none.
std::vector<std::string> objective_names(const StudyRecord& study);

/// What to call each objective: by name, else `value`, or `value 0` and so on of several.
std::vector<std::string> objective_labels(const StudyRecord& study);

/// The system attribute that holds the names. Fails unless there is one for each of `count`
/// objectives, each another.
Attributes named_objectives(const std::vector<std::string>& names, std::size_t count);

}  // namespace lathe::study
