#pragma once

#include "lathe/cli/flags.h"
#include "lathe/experiment/fine_tune.h"

namespace lathe::cli {

/// The flags of everything that decides a run's weights.
void add_fine_tune_options(Flags flags, experiment::FineTuneOptions& options);

/// Says on standard error what matters of a run that is about to start, with the parameters that
/// train where not all do.
void print_recipe(const experiment::FineTuneStart& start);

}  // namespace lathe::cli
