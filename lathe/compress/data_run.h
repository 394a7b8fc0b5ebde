#pragma once

#include <functional>

#include "lathe/core/graph.h"
#include "lathe/core/pass.h"
#include "lathe/engine/executor.h"
#include "lathe/train/example_source.h"

namespace lathe::compress {

/// The part of a model's graph that gives its logits, in the form that examples are fed to: packed
/// where it reads sequences. Somebody is to watch its values.
Graph measured_graph(const Graph& graph);

/// One batch of a run over data.
struct DataBatch {
  const Feed& feed;
  const Feed& outputs;
  double share = 0;  ///< of all the rows of the run
};

/// Runs a measured graph on the first `num_examples` and hands over its outputs batch
/// by batch. `progress` hears of the examples done and may stop the work by returning false; the
/// run then throws Interrupted.
void run_on_data(const Graph& graph, const State& state, train::ExampleSource& examples,
                 std::int64_t num_examples, const engine::ExecutionOptions& execution,
                 const std::function<void(const DataBatch&)>& visit,
                 const std::function<bool(std::int64_t)>& progress = {});

}  // namespace lathe::compress
