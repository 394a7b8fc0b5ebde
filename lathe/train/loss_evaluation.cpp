#include "lathe/train/loss_evaluation.h"

#include <chrono>
#include <cmath>

#include "lathe/core/interrupt.h"
#include "lathe/core/select_outputs.h"
#include "lathe/data/batching.h"
#include "lathe/train/find_loss.h"
#include "lathe/train/make_source.h"

namespace lathe::train {
namespace {

// A language model's head makes tens of thousands of logits for each token: batches stay small.
constexpr std::int64_t kBatchTokens = 1024;

// The graph's loss is a quotient: its two parts add up over batches, it does not.
Graph loss_graph(const io::Model& model) {
  const Loss loss = find_loss(model.graph);
  Graph result = model.graph;
  result.set_output("loss_sum", loss.sum);
  result.set_output("loss_count", loss.count);
  result = select_outputs(std::move(result), {"loss_sum", "loss_count"});
  pack_inputs(result, model);
  return result;
}

}  // namespace

LossEvaluation evaluate_loss(const io::Model& model, ExampleSource& source,
                             const engine::ExecutionOptions& execution,
                             const EvaluationOptions& options) {
  const auto running = engine::make_executor(loss_graph(model), model.state, execution);
  const std::vector<std::int64_t> lengths = source.lengths();
  const data::BatchPlan plan = data::plan_batches(lengths, options.batches(kBatchTokens));
  LossEvaluation result;
  double sum = 0, count = 0;
  for (std::int64_t index = 0; index < plan.num_batches(); ++index) {
    const ExampleBatch batch = source.evaluation_batch(plan.examples(index));
    const auto start = std::chrono::steady_clock::now();
    const Feed outputs = running->run(batch.feed);
    result.forward_seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    sum += outputs.at("loss_sum").at(0);
    if (!std::isfinite(sum))
      fail("the loss of examples {} to {} is {}: the model's weights or formats overflow",
           result.examples + 1, result.examples + std::ssize(batch.examples), sum);
    count += outputs.at("loss_count").at(0);
    result.examples += static_cast<std::int64_t>(batch.examples.size());
    result.tokens += batch.tokens;
    if (options.progress && !options.progress(result.examples, result.tokens)) throw Interrupted();
  }
  // The mean of nothing would be a loss of 0, the best there is.
  if (count == 0)
    fail("{} {}: no token to predict, expected longer texts", result.examples,
         result.examples == 1 ? "example" : "examples");
  result.predictions = static_cast<std::int64_t>(count);
  result.loss = sum / count;
  return result;
}

}  // namespace lathe::train
