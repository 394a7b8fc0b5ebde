#pragma once

#include <memory>

#include "lathe/engine/cpu/cpu_plan_options.h"
#include "lathe/engine/executor.h"

namespace lathe::engine {

/// Runs a graph as a plan made once: fused steps in stages, row steps tile by tile, values in one
/// arena laid out for the largest batch seen.
class CpuExecutor final : public Executor {
 public:
  CpuExecutor(const Graph& graph, State state, const ExecutionOptions& options,
              const CpuPlanOptions& plan_options = {});
  ~CpuExecutor() override;
  Feed run(const Feed& inputs) override;
  State state() const override;
  void set_state(const State& values) override;
  PlanReport report() const override;
  void set_timing(bool on) override;

 private:
  struct Machine;  // the plan, its memory and its threads
  std::unique_ptr<Machine> machine_;
};

}  // namespace lathe::engine
