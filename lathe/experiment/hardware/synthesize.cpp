#include "lathe/experiment/hardware/synthesize.h"

#include <chrono>

#include "lathe/hardware/design_file.h"
#include "lathe/hardware/switching.h"

namespace lathe::experiment {

SynthesizeResult synthesize(const SynthesizeOptions& options, const Callbacks& callbacks) {
  const hardware::SynthesisTarget target = hardware::parse_target(options.target);
  const hardware::Design design = hardware::read_design(options.design);
  const auto start = std::chrono::steady_clock::now();
  SynthesizeResult result{
      .estimate = hardware::resources(design.netlist),
      .synthesis = hardware::synthesize(hardware::read_emission(design, options.design), target,
                                        callbacks.should_stop)};
  result.switching = hardware::switching_bits(design.netlist, design.frame_interval);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace lathe::experiment
