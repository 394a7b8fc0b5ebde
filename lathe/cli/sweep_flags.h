#pragma once

#include "lathe/cli/flags.h"
#include "lathe/experiment/sweep_runner.h"

namespace lathe::cli {

/// The flags that every sweep has: data, training, resuming.
void add_sweep_options(Flags flags, experiment::SweepSettings& options);

}  // namespace lathe::cli
