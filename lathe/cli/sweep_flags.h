#pragma once

#include <string>

#include "lathe/cli/flags.h"
#include "lathe/cli/settings.h"
#include "lathe/experiment/sweep_runner.h"

namespace lathe::cli {

/// The flags that every sweep has: data, training, resuming.
void add_sweep_options(Flags flags, experiment::SweepSettings& options);

/// Adds what a sweep is told by flags that its command has anyway.
void complete(experiment::SweepSettings& options, const std::string& model, const std::string& out,
              bool replaces, const Settings& settings);

}  // namespace lathe::cli
