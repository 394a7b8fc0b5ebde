#include "lathe/compress/data_run.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "lathe/core/interrupt.h"
#include "lathe/core/packed_sequences.h"
#include "lathe/core/select_outputs.h"
#include "lathe/data/batching.h"

namespace lathe::compress {

namespace {

// Examples bring more than a graph may read.
Feed inputs_of(const Graph& graph, const Feed& feed) {
  Feed inputs;
  for (const auto& [name, tensor] : feed)
    if (const std::optional<NodeId> id = graph.find(name); id && graph.is(*id, "input"))
      inputs[name] = tensor;
  return inputs;
}

bool reads_sequences(const Graph& graph) {
  const std::string length = PackedSequences().length;
  for (const NodeId id : graph.nodes_of("input"))
    for (const Size& size : graph.types(id)[0].shape)
      if (size.depends_on(length)) return true;
  return false;
}

}  // namespace

Graph measured_graph(const Graph& graph) {
  Graph measured = select_outputs(graph, {"logits"});
  if (reads_sequences(measured)) run_pass("pack-sequences", measured);
  return measured;
}

void run_on_data(const Graph& graph, const State& state, train::ExampleSource& examples,
                 std::int64_t num_examples, const engine::ExecutionOptions& execution,
                 const std::function<void(const DataBatch&)>& visit,
                 const std::function<bool(std::int64_t)>& progress) {
  constexpr std::int64_t kBatchTokens = 4096;
  const std::unique_ptr<engine::Executor> executor = engine::make_executor(graph, state, execution);
  std::vector<std::int64_t> lengths = examples.lengths();
  lengths.resize(static_cast<std::size_t>(std::min(num_examples, examples.size())));
  const auto total = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  const data::BatchPlan plan =
      data::plan_batches(lengths, {.max_examples = 0, .max_tokens = kBatchTokens});
  std::int64_t done = 0;
  for (std::int64_t b = 0; b < plan.num_batches(); ++b) {
    const train::ExampleBatch batch = examples.evaluation_batch(plan.examples(b));
    const Feed feed = inputs_of(graph, batch.feed);
    const Feed outputs = executor->run(feed);
    visit({feed, outputs,
           static_cast<double>(batch.tokens) /
               static_cast<double>(std::max<std::int64_t>(1, total))});
    done += static_cast<std::int64_t>(batch.examples.size());
    if (progress && !progress(done)) throw Interrupted();
  }
}

}  // namespace lathe::compress
