#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lathe/core/size.h"

namespace lathe::engine {

/// Which of several kernels a step runs by, and why; empty where there is one alone.
struct KernelChoice {
  std::string kernel = {};  ///< "elements"
  std::string reason = {};  ///< "90.0 % zeros, 3.7x expected"
  bool operator==(const KernelChoice&) const = default;
};

/// One kernel call of a plan, as a report shows it.
struct PlannedStep {
  std::string name;
  std::string op;
  std::vector<std::string> origins;  ///< nodes of the user's graph
  int stage = 0;                     ///< steps of one stage share their tiles
  std::string stage_reason = {};     ///< why its stage begins where it does
  std::string layout = {};           ///< "tiles of 42 rows", "16 blocks of 128 x 192"
  bool is_reference = false;         ///< the backend has no kernel: its op's definition runs
  bool is_for_states = false;        ///< runs when states change, not in every run
  KernelChoice choice = {};
  Size flops;
  Size bytes;          ///< of operands and results that do not stay in a tile
  double seconds = 0;  ///< thread time, when timing is on
};

/// How threads spent the time of a stage in all runs since timing is on, in seconds.
struct StageTime {
  double wall = 0;
  double alone = 0;   ///< of it, what the calling thread did while the others had no tasks
  double busy = 0;    ///< in tasks, of all threads together
  double before = 0;  ///< until a thread had its first task, or all along, of all together
  double behind = 0;  ///< from a thread's last task until those of others were done, likewise
  std::int64_t tasks = 0;
  std::int64_t meetings = 0;  ///< times that all tasks had to be done before more could begin
};

/// The plan a graph was compiled to and what it has used so far; empty where nothing is planned.
struct PlanReport {
  std::vector<PlannedStep> steps;
  std::string lowered;           ///< the lowered graph's text
  std::int64_t state_bytes = 0;  ///< a device's own copy of states and constants
  /// In memory for states: the layouts that products read, and states that runs read themselves or
  /// that no file holds. What a device has is counted above.
  std::int64_t weight_bytes = 0;
  std::int64_t arena_bytes = 0;           ///< at the present capacity
  std::int64_t arena_bytes_unshared = 0;  ///< if no buffer shared space with another
  SymbolValues capacity;
  SymbolValues last_sizes;
  std::vector<StageTime> stages;  ///< by PlannedStep::stage, when timing is on
  double run_seconds = 0;         ///< of whole runs, when timing is on
  int threads = 1;
};

/// What a report calls a step's kernel: its op, and in brackets which kernel was chosen or that the
/// definition runs instead.
std::string kernel_text(const PlannedStep& step);

}  // namespace lathe::engine
