#pragma once

#include <string>

#include "lathe/experiment/fine_tune_options.h"

namespace lathe::experiment {

/// The options of a run as a TOML file that `lathe train --config` reads: the table `train` with
/// everything that decides the weights, defaults included. What is left open is left out.
std::string to_config(const FineTuneOptions& options);

}  // namespace lathe::experiment
