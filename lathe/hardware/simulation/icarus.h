#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lathe/hardware/netlist.h"

namespace lathe::hardware {

/// What Icarus Verilog says of a design: a second opinion on what Verilator computes.
struct IcarusResult {
  std::int64_t beats = 0;        ///< compared, on every stream
  std::int64_t differences = 0;  ///< beats that were not as expected, or not defined
  std::int64_t cycles = 0;
  bool is_finished = false;  ///< every output came

  bool is_exact() const { return is_finished && differences == 0 && beats > 0; }
};

/// Emits the design with a test bench in Verilog that feeds recorded beats, `stall` of 256 cycles
/// idle at each port, and compares every beat of every stream with what `evaluate` says.
IcarusResult run_icarus(const Netlist& netlist, const std::vector<Values>& inputs, int stall = 0);

/// The text of that bench; its beats are read from vectors/.
std::string icarus_bench(const Netlist& netlist, std::int64_t frames, int stall);

}  // namespace lathe::hardware
