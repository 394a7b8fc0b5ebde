#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lathe/engine/executor.h"

namespace lathe::engine {

/// One kernel call of a plan, as a report shows it.
struct PlannedStep {
  std::string name;
  std::string op;
  std::vector<std::string> origins;  ///< nodes of the user's graph
  int stage = 0;                     ///< steps of one stage share their tiles
  Size flops;
  double seconds = 0;  ///< thread time, when timing is on
};

/// The plan a graph was compiled to and what it has used so far.
struct PlanReport {
  std::vector<PlannedStep> steps;
  std::string lowered;                    ///< the lowered graph's text
  std::int64_t arena_bytes = 0;           ///< at the present capacity
  std::int64_t arena_bytes_unshared = 0;  ///< if no buffer shared space with another
  SymbolValues capacity;
  SymbolValues last_sizes;
};

/// Runs a graph as a plan made once: fused steps in stages, row steps tile by tile, values in one
/// arena laid out for the largest batch seen.
class CpuExecutor final : public Executor {
 public:
  CpuExecutor(const Graph& graph, State state, const ExecutionOptions& options);
  ~CpuExecutor() override;
  Feed run(const Feed& inputs) override;
  State state() const override;
  void set_timing(bool on);
  PlanReport report() const;

 private:
  struct Machine;  // the plan, its memory and its threads
  std::unique_ptr<Machine> machine_;
};

}  // namespace lathe::engine
