#pragma once

#include "lathe/cli/flags.h"
#include "lathe/experiment/sweep.h"

namespace lathe::cli {

/// The flags of how a model is quantized, and of a sweep over formats.
void add_quantize_options(Flags flags, experiment::QuantizeOptions& options);
void add_sweep_options(Flags flags, experiment::SweepOptions& options);

}  // namespace lathe::cli
