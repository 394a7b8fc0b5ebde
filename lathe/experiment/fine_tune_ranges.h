#pragma once

#include "lathe/experiment/fine_tune_options.h"

namespace lathe::experiment {

/// Fails on an option of training whose value makes no sense, naming it and what was expected.
void check_ranges(const FineTuneOptions& options);

}  // namespace lathe::experiment
