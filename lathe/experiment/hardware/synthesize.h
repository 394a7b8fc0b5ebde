#pragma once

#include <filesystem>
#include <string>

#include "lathe/experiment/callbacks.h"
#include "lathe/hardware/synthesis/synthesize.h"

namespace lathe::experiment {

struct SynthesizeOptions {
  std::filesystem::path design = {};
  std::string target = "xilinx7";
};

/// What was estimated when a design was emitted, and what Yosys made of its files.
struct SynthesizeResult {
  hardware::Resources estimate;
  hardware::Synthesis synthesis;
  double switching = 0;  ///< bits in a cycle, by estimate
  double seconds = 0;
};

SynthesizeResult synthesize(const SynthesizeOptions& options, const Callbacks& callbacks = {});

}  // namespace lathe::experiment
