#include "lathe/engine/reference_executor.h"

#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/engine/testing/executor_cases.h"

namespace lathe::engine {
namespace {

const char* const kGraph = R"(
  x = input() : f32[B,2]
  w = state() : f32[3,2]
  h = linear(x, w, none)
  y = relu(h)
  output y <- y
)";

TEST(RunReference, ComputesWhatOneComputesByHand) {
  const State state{{"w", Tensor::from<float>({3, 2}, {1, 2, 3, 4, -1, -1})}};
  const Feed feed{{"x", Tensor::from<float>({2, 2}, {1, 1, 1, -1})}};
  std::string seen;
  const Graph graph = parse_graph(kGraph);
  const Feed outputs = run_reference(
      graph, state, feed, [&](Value value, const Tensor&) { seen += graph.name(value) + ' '; });
  EXPECT_TRUE(identical(outputs.at("y"), Tensor::from<float>({2, 3}, {3, 7, 0, 0, 0, 0})));
  EXPECT_EQ(seen, "x w h y ");
}

TEST(MakeExecutor, NamesTheNearestDeviceAndChecksTheStates) {
  const Graph graph = parse_graph(kGraph);
  EXPECT_EQ(error_text([&] { make_executor(graph, {}, {.device = "cpi"}); }),
            "unknown device \"cpi\"; known: cpu, reference\nhint: did you mean \"cpu\"?");
  EXPECT_EQ(error_text([&] { make_executor(graph, {}); }),
            "tensor \"w\" is missing: expected f32[3,2]");
}

TEST(Executors, KeepTheirOwnGraphAndStates) {
  for (const char* kind : {"reference", "cpu"}) {
    Graph graph = parse_graph(kGraph);
    State state = random_state(graph, 1);
    const auto executor = make_executor(graph, state, {.device = kind});
    const Feed feed = random_feed(graph, {{"B", 3}}, 2);
    const Feed first = executor->run(feed);
    for (float& value : state["w"].mutable_data<float>()) value = 0;
    graph.remove_output("y");
    expect_identical(executor->run(feed), first);
  }
}

}  // namespace
}  // namespace lathe::engine
