// A pruned model runs by other kernels than a dense one and gives the same bits.

#include <gtest/gtest.h>

#include "lathe/compress/pruning/prune_model.h"
#include "lathe/engine/testing/executor_cases.h"

namespace lathe::compress {
namespace {

// A graph that updates a state is one of training, whose products leave nothing out.
Graph with_dense_products(Graph graph, State& state) {
  const NodeId counter =
      graph.add({.name = "counter", .op = "state", .inputs = {}, .types = {{DType::F32, {}}}});
  const NodeId next = graph.add({.name = "next",
                                 .op = "add",
                                 .inputs = {{counter, 0}, {counter, 0}},
                                 .types = {{DType::F32, {}}}});
  graph.bind_state(counter, {next, 0});
  state["counter"] = Tensor(DType::F32, {});
  return graph;
}

// How many linear layers leave zeros out.
int num_sparse(const engine::Executor& executor) {
  int count = 0;
  for (const engine::PlannedStep& step : executor.report().steps)
    if (!step.choice.kernel.empty() && step.choice.kernel != "dense") ++count;
  return count;
}

TEST(PrunedInference, GivesTheBitsOfTheMaskedModelForEveryGranularity) {
  for (const char* granularity :
       {"element", "2:4", "4:8", "1:4", "1x16", "4x4", "row", "column", "head", "neuron"}) {
    SCOPED_TRACE(granularity);
    io::Model model = io::load_model("bert-tiny", {.task = "classify", .seed = 1});
    PruningSettings settings{.granularity = parse_granularity(granularity)};
    if (settings.granularity->kind != Granularity::Kind::SomeOfSeveral)
      settings.sparsity = settings.granularity->kind == Granularity::Kind::Head ? 0.5 : 0.9;
    prune_model(model, {.request = {.settings = settings}}, nullptr, {});
    State dense_state = model.state;
    const Graph dense_graph = with_dense_products(model.graph, dense_state);
    const auto sparse = engine::make_executor(model.graph, model.state);
    const auto dense = engine::make_executor(dense_graph, dense_state);
    EXPECT_GE(num_sparse(*sparse), 4);  // of neurons, two layers in each feed-forward part
    EXPECT_EQ(num_sparse(*dense), 0);
    for (const std::int64_t length : {1, 40}) {
      const Feed feed = engine::random_feed(model.graph, {{"B", 3}, {"L", length}}, 5);
      engine::expect_identical(sparse->run(feed), dense->run(feed));
    }
  }
}

}  // namespace
}  // namespace lathe::compress
