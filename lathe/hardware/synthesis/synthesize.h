#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "lathe/hardware/emission.h"
#include "lathe/hardware/resources.h"

namespace lathe::hardware {

/// What a design is synthesized for.
enum class SynthesisTarget { Xilinx7, Ice40 };
/// "xilinx7" or "ice40"; fails with what there is.
SynthesisTarget parse_target(const std::string& name);

/// What Yosys made of a design.
struct Synthesis {
  std::map<std::string, std::int64_t> cells;  ///< by kind
  Resources resources = {};  ///< Xilinx 7: DSP48E1, RAMB18E1 and LUTs, those of memories included
  std::int64_t registers = 0;
};

/// Synthesizes the files of a design. Fails with what Yosys says, or where it is not installed.
Synthesis synthesize(const Emission& emission, SynthesisTarget target);

/// Counts the cells in a report of Yosys's `stat`.
Synthesis parse_statistics(const std::string& text, SynthesisTarget target);

}  // namespace lathe::hardware
