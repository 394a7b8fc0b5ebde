#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lathe/hardware/netlist.h"

namespace lathe::hardware {

struct ScheduleOptions {
  std::int64_t frames = 1;
  /// Beats of a frame enter evenly over so many cycles; 0: as fast as the design takes them.
  std::int64_t frame_interval = 0;
  /// By instance: beats a queue holds instead of what it says; 0: what it says. Empty: all.
  std::vector<std::int64_t> capacities = {};
};

/// When each beat moves, to the cycle, computed from the blocks' timings without any data. Cycle 0
/// is the first in which the inputs offer a beat; readers of outputs are always ready.
struct Schedule {
  struct Beats {
    std::int64_t count = 0;
    std::int64_t first = -1, last = -1;  ///< the cycles of the first and the last transfer
  };
  std::vector<Beats> streams;            ///< by stream
  std::vector<std::int64_t> room;        ///< by instance: beats that a queue needs room for
  std::vector<std::int64_t> frame_ends;  ///< the cycle in which the last output of a frame leaves
  std::int64_t cycles = 0;               ///< until the last beat has left
  std::int64_t work = 0;                 ///< steps of controllers that it took to compute
  /// Not empty where nothing can move any more: the streams on which a beat waits.
  std::vector<StreamId> stuck;

  bool is_deadlocked() const { return !stuck.empty(); }
  /// Cycles from frame to frame, once the pipeline is full: between the last two.
  std::int64_t frame_interval() const;
};

/// The netlist must have one reader for each stream.
Schedule schedule(const Netlist& netlist, const ScheduleOptions& options = {});

/// Cycles a frame takes in a block that nobody makes wait.
std::int64_t frame_cycles(const BlockCall& call);
/// Cycles a frame takes in the slowest block or stream: no FIFO makes it less.
std::int64_t bottleneck_cycles(const Netlist& netlist);

}  // namespace lathe::hardware
