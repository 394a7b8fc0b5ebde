#pragma once

#include <memory>

#include "lathe/engine/executor.h"

namespace lathe::engine {

struct CudaMachine;

/// Runs a graph on a GPU as a plan made once: kernels in one stream, values in one arena, states on
/// the device. The second run of a size is captured as a CUDA graph, and every later one replays
/// it.
class CudaExecutor final : public Executor {
 public:
  CudaExecutor(const Graph& graph, State state, const ExecutionOptions& options);
  ~CudaExecutor() override;
  Feed run(const Feed& inputs) override;
  void start(const Feed& inputs) override;
  Feed finish() override;
  int most_begun() const override;
  State state() const override;
  void set_state(const State& values) override;
  PlanReport report() const override;
  std::vector<double> repeat(int times, bool replays) override;
  /// Nodes of the CUDA graph that the last run replayed; 0 where it was not captured yet.
  int num_captured_nodes() const;

 private:
  std::unique_ptr<CudaMachine> machine_;
};

}  // namespace lathe::engine
