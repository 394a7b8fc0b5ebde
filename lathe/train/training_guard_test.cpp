#include <gtest/gtest.h>

#include <cmath>

#include "lathe/engine/executor.h"
#include "lathe/engine/testing/executor_cases.h"
#include "lathe/train/testing/opinions.h"
#include "lathe/train/train_model.h"
#include "lathe/train/training_feed.h"

namespace lathe::train {
namespace {

// A device may have begun the next step when a step turns out to have failed: the weights must be
// those before the failure whatever that step would have done.
TEST(TrainingGuard, LeavesStatesAsTheyAreBehindAStepThatFailed) {
  const io::Model model = bert_tiny_of_twenty_words();
  State state = model.state;
  const TrainingGraph training = make_training_graph(model, {}, state);
  const std::unique_ptr<engine::Executor> executor =
      engine::make_executor(training.graph, state, {});
  data::Batch batch;
  batch.ids = {1, 2, 3, 4};
  batch.offsets = {0, 2, 4};
  batch.labels = {0, 1};
  batch.example_indices = {0, 1};
  const auto step = [&](std::int64_t number) {
    Feed feed, all = make_training_feed(batch, {}, 0);
    set_step_inputs(all, 1e-2, 1, number, true);
    for (const NodeId id : training.graph.nodes_of("input"))
      feed[training.graph.name(id)] = all.at(training.graph.name(id));
    return executor->run(feed).at("gradient_norm").at(0);
  };
  EXPECT_TRUE(std::isfinite(step(1)));
  const std::string weight = "classifier.weight";
  const State good = executor->state();
  Tensor broken = good.at(weight);
  broken.mutable_data<float>()[0] = INFINITY;
  executor->set_state({{weight, broken}});
  EXPECT_FALSE(std::isfinite(step(2)));
  executor->set_state({{weight, good.at(weight)}});
  EXPECT_FALSE(std::isfinite(step(3)));
  State after = executor->state(), before = good;
  after.erase("optimizer.guard");
  before.erase("optimizer.guard");
  engine::expect_identical(after, before);
}

}  // namespace
}  // namespace lathe::train
