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
            "unknown device \"cpi\"; known: cpu, cpu-unfused, cuda, reference\nhint: did you mean "
            "\"cpu\"?");
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

// One state is read as it is, one is rounded first, and one is updated by every run.
TEST(Executors, TakeNewValuesOfStates) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[B,2]
    w = state() : f32[3,2]
    v = state() : f32[3,3]
    r = quantize(v) {format="fixed:8,4"}
    n = state() {role="buffer"} : f32[2]
    h = linear(x, w)
    y = linear(h, r)
    m = add(n, n)
    z = add(x, n)
    output y <- y
    output z <- z
    state n <- m
  )");
  const Feed feed = random_feed(graph, {{"B", 3}}, 2);
  for (const char* device : {"reference", "cpu"}) {
    SCOPED_TRACE(device);
    const auto executor = make_executor(graph, random_state(graph, 1), {.device = device});
    executor->run(feed);
    State other = random_state(graph, 5);
    const auto fresh = make_executor(graph, other, {.device = device});
    executor->set_state(other);
    for (int run = 0; run < 2; ++run) expect_identical(executor->run(feed), fresh->run(feed));
    expect_identical(executor->state(), fresh->state());
    EXPECT_TRUE(identical(other.at("n"), random_state(graph, 5).at("n"))) << "written through";
    EXPECT_EQ(error_text([&] {
                executor->set_state({{"r", other.at("v")}});
              }),
              "tensor \"r\" is no state of the graph");
    EXPECT_EQ(error_text([&] {
                executor->set_state({{"w", other.at("v")}});
              }),
              "tensor \"w\" is f32[3,3], but f32[3,2] is expected");
  }
}

}  // namespace
}  // namespace lathe::engine
