#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "lathe/experiment/fine_tune_options.h"

namespace lathe::experiment {

/// What `run.json` records of a run: paths absolute, so that it can be resumed from anywhere.
nlohmann::json to_json(const FineTuneOptions& options);

/// Takes the options of the run that was started in `options.out`, which is resumed. Those in
/// `given` were asked for again and must be the same.
void take_recorded(FineTuneOptions& options, const nlohmann::json& recorded,
                   const std::set<std::string>& given);

/// Sets options by the names that `run.json` has for them; fails on a name that is none and on a
/// value that is not of its kind.
void set_options(FineTuneOptions& options, const nlohmann::json& values);

}  // namespace lathe::experiment
