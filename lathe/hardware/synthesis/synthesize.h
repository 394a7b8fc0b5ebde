#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "lathe/core/interrupt.h"
#include "lathe/hardware/emission.h"
#include "lathe/hardware/resources.h"

namespace lathe::hardware {

/// What a design is synthesized for.
enum class SynthesisTarget { Xilinx7, Ice40 };
/// "xilinx7" or "ice40"; fails with what there is.
SynthesisTarget parse_target(const std::string& name);

/// A design in an iCE40 HX8K, placed and routed by nextpnr.
struct Placement {
  std::int64_t logic_cells = 0;  ///< of 7680
  double megahertz = 0;          ///< the fastest clock
};

/// What Yosys made of a design.
struct Synthesis {
  std::map<std::string, std::int64_t> cells;  ///< by kind
  Resources resources = {};  ///< Xilinx 7: DSP48E1, RAMB18E1 and LUTs, those of memories included
  std::int64_t registers = 0;
  std::optional<Placement> placement = {};  ///< for iCE40
  std::string not_placed = {};              ///< or why it was not
};

/// Synthesizes the files of a design; for iCE40 it is placed and routed too, where nextpnr-ice40 is
/// installed and the device has room. Fails with what Yosys says, or where it is not installed.
Synthesis synthesize(const Emission& emission, SynthesisTarget target,
                     const ShouldStop& should_stop = {});

/// What becomes of each block of a design alone, for Xilinx 7, with the boundaries between them
/// kept; by the name of its instance in the emitted text.
std::map<std::string, Resources> synthesize_blocks(const Emission& emission);

/// Reads what nextpnr-ice40 wrote; nothing where it came to no end.
std::optional<Placement> parse_placement(const std::string& text);

/// Counts the cells in a report of Yosys's `stat`.
Synthesis parse_statistics(const std::string& text, SynthesisTarget target);

}  // namespace lathe::hardware
