#pragma once

#include <cstdint>
#include <variant>
#include <vector>

namespace lathe::hardware {

/// A block with one controller: it fires at most once a cycle, each time taking a beat from some of
/// its inputs and sending one into a pipeline or not, in an order that does not depend on data. The
/// pipeline's stages move when the next one is free. What produces nothing ends in stage `merge`,
/// where sums are gathered.
struct SequenceTiming {
  struct Phase {
    std::int64_t count = 1;
    std::uint32_t takes = 1;  ///< bit i: a beat of input i
    bool gives = true;
  };
  std::vector<Phase> period;
  int stages = 1;
  int merge = 1;
  /// What a block gathers from its second input before it fires, twice, so that the next arrives
  /// while one is used. No phase takes that input.
  struct Store {
    std::int64_t beats = 0;    ///< of one; 0: there is no store
    std::int64_t periods = 1;  ///< that use it
  };
  Store store = {};
};

/// A queue of beats: whether it takes one does not depend on what happens at its output.
struct StorageTiming {
  std::int64_t capacity = 2;
  bool has_output_register = false;  ///< the last beat stands behind a synchronous read
};

/// Gives each beat to every branch, each when it is ready.
struct ForkTiming {};

/// A block that writes into a memory and reads from it independently. In each period, output j may
/// be read once `need[j]` beats of the period have entered, and beat k may enter once `free[k]`
/// outputs of the period (if negative, of those before) have been read.
struct BufferTiming {
  std::vector<std::int64_t> need;
  std::vector<std::int64_t> free;
  bool frees_at_once = false;  ///< an output that leaves makes room in the same cycle
  int stages = 1;              ///< from reading to the output; 0: read where it stands
};

/// When a block takes and gives beats: its curve of consumption and production. Exact to the cycle.
using Timing = std::variant<SequenceTiming, StorageTiming, ForkTiming, BufferTiming>;

/// Cycles from one period to the next when nobody makes the block wait.
std::int64_t period_cycles(const Timing& timing);

}  // namespace lathe::hardware
