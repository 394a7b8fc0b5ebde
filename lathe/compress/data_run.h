#pragma once

#include <functional>

#include "lathe/core/graph.h"
#include "lathe/core/pass.h"
#include "lathe/data/batching.h"
#include "lathe/data/tokenized_dataset.h"
#include "lathe/engine/executor.h"

namespace lathe::compress {

/// Runs a packed graph on the first `num_examples` of a dataset and hands over its outputs batch by
/// batch. `progress` hears of the examples done and may stop the work by returning false; the run
/// then throws Interrupted.
void run_on_data(const Graph& graph, const State& state, const data::TokenizedDataset& dataset,
                 std::int64_t num_examples, const engine::ExecutionOptions& execution,
                 const std::function<void(const data::Batch&, const Feed&)>& visit,
                 const std::function<bool(std::int64_t)>& progress = {});

}  // namespace lathe::compress
