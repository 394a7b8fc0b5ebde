#pragma once

// For the tests of the CPU's steps: graphs that must run on them alone, compared with the
// reference on every instruction set.

#include "lathe/engine/cpu/cpu_executor.h"
#include "lathe/engine/cpu/every_isa.h"
#include "lathe/engine/cpu/step.h"
#include "lathe/engine/lower.h"
#include "lathe/engine/testing/executor_cases.h"

namespace lathe::engine {

/// Nodes of the lowered graph that the CPU has no step for, one line each.
inline std::string nodes_without_steps(const Graph& graph) {
  std::string result;
  const Backend& cpu = find_backend("cpu");
  const Graph lowered = lower(graph, cpu);
  for (const NodeId id : lowered.topological_order()) {
    if (!lowered.op(id).is_source && !cpu.can_run(lowered, id)) result += print(lowered, id) + "\n";
  }
  return result;
}

/// Runs on the CPU's own steps, near the reference on every instruction set, and to the same bits
/// whatever the number of threads.
inline void expect_own_steps(const Graph& graph, const State& state, const Feed& feed,
                             double tolerance) {
  EXPECT_EQ(nodes_without_steps(graph), "");
  const Feed expected = make_executor(graph, state, {.device = "reference"})->run(feed);
  ThreadPool pool(3);
  for (const Isa isa : supported_isas()) {
    SCOPED_TRACE(std::string(name(isa)));
    const Feed actual = make_executor(graph, state, {.isa = isa})->run(feed);
    expect_near(actual, expected, tolerance);
    expect_identical(make_executor(graph, state, {.pool = &pool, .isa = isa})->run(feed), actual);
  }
}

/// In bfloat16, has the same bits whether values between the steps lie as floats or not, and
/// whatever the number of threads.
inline void expect_bits_of_wide_values(const Graph& graph, const State& state, const Feed& feed) {
  ThreadPool pool(3);
  for (const Isa isa : supported_isas()) {
    SCOPED_TRACE(std::string(name(isa)));
    const ExecutionOptions alone{.isa = isa, .precision = Precision::Bf16};
    const Feed wide = CpuExecutor(graph, state, alone, {.narrows_values = false}).run(feed);
    expect_identical(CpuExecutor(graph, state, alone).run(feed), wide);
    const ExecutionOptions shared{.pool = &pool, .isa = isa, .precision = Precision::Bf16};
    expect_identical(CpuExecutor(graph, state, shared).run(feed), wide);
  }
}

}  // namespace lathe::engine
