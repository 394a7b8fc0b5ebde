#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lathe/hardware/netlist.h"

namespace lathe::hardware {

/// What FIFOs are for.
enum class FifoGoal {
  Throughput,  ///< frames follow each other as fast as the slowest block goes
  Liveness,    ///< nothing waits for ever, and no beat of memory more than that takes
};

struct FifoChoice {
  std::string stream;      ///< in front of which it stands, by name in the netlist given
  std::int64_t depth = 0;  ///< beats; always at least 1, where none is needed none is put
  /// One beat less and the design stops for ever, whatever the stalls outside.
  bool is_tight = false;
  /// False where making it smaller was not tried to the end: one beat less may do as well.
  bool is_least = false;
};

struct SizedNetlist {
  Netlist netlist;
  std::vector<FifoChoice> fifos = {};
  std::int64_t frame_interval = 0;  ///< cycles, computed
};

/// Puts FIFOs where the goal needs them, of depths computed from the blocks' schedules.
///
/// Frames enter at the pace of the slowest block, with FIFOs of any depth everywhere; the room that
/// they then need is enough, because a design whose beats never wait for room behaves as if
/// there were room without end, and beats that come earlier never make others later. Depths are
/// then reduced, those of most memory first, as long as the goal is met and some seconds have not
/// passed. Fails where no depth is enough.
SizedNetlist size_fifos(const Netlist& netlist, FifoGoal goal = FifoGoal::Throughput);

}  // namespace lathe::hardware
