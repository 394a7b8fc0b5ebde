#include "lathe/compress/data_run.h"

#include <algorithm>

#include "lathe/core/interrupt.h"

namespace lathe::compress {

void run_on_data(const Graph& graph, const State& state, const data::TokenizedDataset& dataset,
                 std::int64_t num_examples, const engine::ExecutionOptions& execution,
                 const std::function<void(const data::Batch&, const Feed&)>& visit,
                 const std::function<bool(std::int64_t)>& progress) {
  constexpr std::int64_t kBatchTokens = 4096;
  const std::unique_ptr<engine::Executor> executor =
      engine::make_executor("cpu", graph, state, execution);
  std::vector<std::int64_t> lengths = dataset.lengths();
  lengths.resize(static_cast<std::size_t>(std::min(num_examples, dataset.size())));
  const data::BatchPlan plan =
      data::plan_batches(lengths, {.max_examples = 0, .max_tokens = kBatchTokens});
  std::int64_t done = 0;
  for (std::int64_t b = 0; b < plan.num_batches(); ++b) {
    const data::Batch batch = data::make_batch(dataset, plan.examples(b));
    Feed feed;
    feed["input_ids"] =
        Tensor::from<std::int32_t>({batch.num_tokens()}, std::span<const std::int32_t>(batch.ids));
    feed["offsets"] = Tensor::from<std::int32_t>({batch.num_sequences() + 1},
                                                 std::span<const std::int32_t>(batch.offsets));
    visit(batch, executor->run(feed));
    done += batch.num_sequences();
    if (progress && !progress(done)) throw Interrupted();
  }
}

}  // namespace lathe::compress
