#pragma once

#include "lathe/experiment/sweep.h"

namespace CLI {
class App;
}

namespace lathe::cli {

/// The flags of how a model is quantized, and of a sweep over formats.
void add_quantize_options(CLI::App& app, experiment::QuantizeOptions& options);
void add_sweep_options(CLI::App& app, experiment::SweepOptions& options);

}  // namespace lathe::cli
