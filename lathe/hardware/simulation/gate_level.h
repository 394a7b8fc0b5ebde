#pragma once

#include <string>
#include <vector>

#include "lathe/hardware/netlist.h"
#include "lathe/hardware/simulation/simulate.h"

namespace lathe::hardware {

/// A design as Yosys synthesized it into gates and flip-flops.
struct GateLevelDesign {
  std::string verilog;
  std::vector<bool> visible;  ///< by stream: whether its nets are still there
  std::int64_t cells = 0;
};

/// Runs Yosys, module by module, so that the nets between blocks stay.
GateLevelDesign synthesize_gates(const Netlist& netlist);
/// The same of files that lie somewhere.
GateLevelDesign synthesize_gates(const Emission& emission, const ShouldStop& should_stop = {});

/// The simulation of what Yosys made, by the same bench.
Simulator gate_level_simulator(const Netlist& netlist, const GateLevelDesign& design,
                               const ShouldStop& should_stop = {});

}  // namespace lathe::hardware
