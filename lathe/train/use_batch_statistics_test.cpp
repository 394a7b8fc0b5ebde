#include "lathe/train/use_batch_statistics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lathe/core/graph_text.h"
#include "lathe/engine/executor.h"
#include "lathe/io/model.h"
#include "lathe/models/loss.h"
#include "lathe/train/array_source.h"
#include "lathe/train/training_feed.h"
#include "lathe/train/training_graph.h"

namespace lathe::train {
namespace {

// A ResNet of one residual part, small enough to train in a test.
io::Model small_resnet() {
  return io::load_model("resnet20", {.num_labels = 2,
                                     .config = {{"embedding_size", std::int64_t{4}},
                                                {"hidden_sizes", std::vector<std::int64_t>{4}},
                                                {"depths", std::vector<std::int64_t>{1}},
                                                {"image_size", std::vector<std::int64_t>{6, 6}}},
                                     .seed = 5});
}

std::vector<float> images(std::size_t count) {
  std::vector<float> values(count * 36);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>((i * 37 + i / 36 * 11) % 101) / 101.0f;
  return values;
}

Feed feed_of(const TrainingGraph& training, ArraySource& source, std::int64_t step, bool applies) {
  const std::vector<std::int64_t> examples{0, 1, 2, 3};
  Feed all = source.training_batch(examples, 0).feed, feed;
  set_step_inputs(all, 1e-2, 1, step, applies);
  for (const NodeId id : training.graph.nodes_of("input"))
    feed[training.graph.name(id)] = all.at(training.graph.name(id));
  return feed;
}

const std::string kNorm = "resnet.embedder.embedder.normalization";

TEST(BatchStatistics, AreKeptWithATenthOfWhatABatchShows) {
  io::Model model = small_resnet();
  models::attach_loss(model.graph, model.labels);
  State state = model.state;
  const TrainingGraph training = make_training_graph(model, {}, state);
  EXPECT_EQ(training.graph.nodes_of("batch_norm").size(), 0u);
  EXPECT_EQ(training.graph.nodes_of("normalize_batch").size(), 3u);
  const std::vector<float> values = images(4);
  ArraySource source("pixel_values", {1, 6, 6}, values, {0, 1, 0, 1});

  // What the first convolution gives, by the definition.
  Graph forward = model.graph;
  forward.set_output("convolved", {forward.at("resnet.embedder.embedder.convolution"), 0});
  const auto reference = engine::make_executor(forward, model.state, {.device = "reference"});
  Feed feed = source.evaluation_batch(std::vector<std::int64_t>{0, 1, 2, 3}).feed;
  feed.erase("examples");
  const Tensor convolved = reference->run(feed).at("convolved");
  double mean = 0, squares = 0;
  for (std::int64_t n = 0; n < 4; ++n)
    for (std::int64_t i = 0; i < 36; ++i) mean += convolved.at(n * 4 * 36 + i) / 144;
  for (std::int64_t n = 0; n < 4; ++n)
    for (std::int64_t i = 0; i < 36; ++i)
      squares += std::pow(convolved.at(n * 4 * 36 + i) - mean, 2);

  for (const char* device : {"reference", "cpu"}) {
    SCOPED_TRACE(device);
    const auto executor = engine::make_executor(training.graph, state, {.device = device});
    executor->run(feed_of(training, source, 1, true));
    const State after = executor->state();
    EXPECT_NEAR(after.at(kNorm + ".running_mean").at(0), 0.1 * mean, 1e-6);
    EXPECT_NEAR(after.at(kNorm + ".running_var").at(0), 0.9 + 0.1 * squares / 143, 1e-6);
  }
}

TEST(BatchStatistics, AreNotKeptOfAStepThatFailed) {
  io::Model model = small_resnet();
  models::attach_loss(model.graph, model.labels);
  State state = model.state;
  state.at("classifier.1.bias").mutable_data<float>()[0] = INFINITY;
  const TrainingGraph training = make_training_graph(model, {}, state);
  const std::vector<float> values = images(4);
  ArraySource source("pixel_values", {1, 6, 6}, values, {0, 1, 0, 1});
  const auto executor = engine::make_executor(training.graph, state, {});
  executor->run(feed_of(training, source, 1, true));
  for (const char* part : {".running_mean", ".running_var"})
    EXPECT_TRUE(identical(executor->state().at(kNorm + part), model.state.at(kNorm + part)));
}

TEST(BatchStatistics, StayAsTheyAreWhereTheyAreFrozen) {
  io::Model model = small_resnet();
  models::attach_loss(model.graph, model.labels);
  State state = model.state;
  const TrainingGraph training =
      make_training_graph(model, {.freeze = {"embedder.*normalization"}}, state);
  EXPECT_EQ(training.graph.nodes_of("batch_norm").size(), 1u);
  EXPECT_EQ(training.graph.nodes_of("normalize_batch").size(), 2u);
}

}  // namespace
}  // namespace lathe::train
