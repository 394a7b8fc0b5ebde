#pragma once

#include "lathe/core/graph.h"
#include "lathe/engine/executor.h"
#include "lathe/experiment/bench/bench_result.h"
#include "lathe/experiment/callbacks.h"

namespace lathe::experiment::bench {

/// How often things are timed.
struct Repeats {
  int warm_up = 3;
  int samples = 21;
};

/// Runs an executor on one feed. On a device with inputs of its own, repetitions leave out the
/// copies of inputs and outputs. `replays`: as captured graphs, where the device makes them.
Timing time_runs(engine::Executor& executor, const Feed& feed, const Repeats& repeats,
                 const Callbacks& callbacks, bool replays = true);

/// Numbers in [-1, 1) and integers 0 or 1 for the graph's inputs.
Feed made_up_feed(const Graph& graph, const SymbolValues& sizes, std::uint64_t seed);

/// Throws where the work is to end: what is timed asks between its executions.
void check_stop(const Callbacks& callbacks);

/// What the device's memory can do, by a copy of so many bytes; 0: as many as no cache holds.
double copy_bandwidth(const engine::ExecutionOptions& execution, const Callbacks& callbacks,
                      std::int64_t bytes = 0);
/// What the device computes at most: the engine's product of two large square matrices.
double product_peak(const engine::ExecutionOptions& execution, const Callbacks& callbacks);
/// What to call the device.
std::string device_name(const engine::ExecutionOptions& execution);

}  // namespace lathe::experiment::bench
