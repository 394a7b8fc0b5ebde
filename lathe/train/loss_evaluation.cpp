#include "lathe/train/loss_evaluation.h"

#include <algorithm>
#include <chrono>

#include "lathe/core/error.h"
#include "lathe/core/interrupt.h"
#include "lathe/core/select_outputs.h"

namespace lathe::train {
namespace {

// A language model's head makes tens of thousands of logits for each token: batches stay small.
constexpr std::int64_t kBatchTokens = 1024;

// The graph's loss is a quotient: its two parts add up over batches, it does not.
Graph loss_graph(const Graph& graph) {
  const std::optional<Value> loss = graph.output("loss");
  if (!loss) fail("the model's graph has no loss: it needs the input labels");
  check(graph.is(loss->node, "div"), "a loss to be a sum divided by a count");
  Graph result = graph;
  result.set_output("loss_sum", graph.input(loss->node, 0));
  result.set_output("loss_count", graph.input(loss->node, 1));
  result = select_outputs(std::move(result), {"loss_sum", "loss_count"});
  run_pass("pack-sequences", result);
  return result;
}

}  // namespace

LossEvaluation evaluate_loss(const io::Model& model, const data::TokenizedDataset& dataset,
                             const Objective& objective, const engine::ExecutionOptions& options,
                             const std::function<bool(std::int64_t)>& progress) {
  const auto running = engine::make_executor(loss_graph(model.graph), model.state, options);
  data::BatchOptions batching;
  batching.max_examples = 0;
  batching.max_tokens = kBatchTokens;
  const std::vector<std::int64_t> lengths = dataset.lengths();
  const data::BatchPlan plan = data::plan_batches(lengths, batching);
  LossEvaluation result;
  double sum = 0, count = 0;
  for (std::int64_t index = 0; index < plan.num_batches(); ++index) {
    const data::Batch batch = data::make_batch(dataset, plan.examples(index));
    const Feed feed = make_validation_feed(batch, objective);
    const auto start = std::chrono::steady_clock::now();
    const Feed outputs = running->run(feed);
    result.forward_seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    sum += outputs.at("loss_sum").at(0);
    count += outputs.at("loss_count").at(0);
    result.examples += static_cast<std::int64_t>(batch.labels.size());
    result.tokens += static_cast<std::int64_t>(batch.ids.size());
    if (progress && !progress(result.examples)) throw Interrupted();
  }
  result.predictions = static_cast<std::int64_t>(count);
  result.loss = sum / std::max(1.0, count);
  return result;
}

}  // namespace lathe::train
