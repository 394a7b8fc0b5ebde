#pragma once

#include "lathe/cli/flags.h"
#include "lathe/experiment/quantize.h"

namespace lathe::cli {

/// The flags of how a model is quantized.
void add_quantize_options(Flags flags, experiment::QuantizeOptions& options);

}  // namespace lathe::cli
