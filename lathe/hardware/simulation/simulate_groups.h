#pragma once

#include "lathe/core/interrupt.h"
#include "lathe/core/thread_pool.h"
#include "lathe/hardware/simulation/simulate.h"

namespace lathe::hardware {

/// How many frames follow each other in one run so that what every stream should carry fits into a
/// quarter of a gigabyte; at least one, and all where a block has a memory of frames before.
std::int64_t frames_at_once(const Netlist& netlist);

/// What several runs showed, added up: cycles and counts are sums, the cycle of a difference is
/// that of its own run.
struct GroupedSimulation {
  Simulation all;
  std::int64_t predicted_cycles = 0;  ///< the same sum by `schedule`, without stalls
  std::int64_t groups = 0;
};

/// Runs frames in groups of `frames_in_group`, each from reset on: the groups share the threads of
/// the pool, if there is one. One group is what `Simulator::run` does. Waves need that.
GroupedSimulation simulate_groups(const Simulator& simulator, const std::vector<Values>& inputs,
                                  std::int64_t frames_in_group, const SimulationOptions& options,
                                  ThreadPool* pool, const ShouldStop& should_stop = {});

}  // namespace lathe::hardware
