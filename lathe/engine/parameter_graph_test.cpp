#include "lathe/engine/parameter_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/core/differentiate.h"
#include "lathe/engine/cpu/cpu_executor.h"
#include "lathe/engine/cpu/every_isa.h"
#include "lathe/engine/testing/executor_cases.h"

namespace lathe::engine {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

TEST(SplitParameters, MovesWhatDependsOnStatesAlone) {
  const SplitGraph split = split_parameters(parse_graph(R"(
    x = input() : f32[B,4]
    w = state() : f32[3,4]
    s = state() : f32[3]
    half = constant() {values=[0.5]} : f32[]
    t = mul(s, half)
    q = quantize(w, t) {format="int:4,channel"}
    y = linear(x, q)
    output y <- y
  )"));
  EXPECT_EQ(print(split.parameters), R"(lathe-ir 2
s = input() : f32[3]
half = constant() {values=[0.5]} : f32[]
t = mul(s, half) : f32[3]
w = input() : f32[3,4]
q = quantize(w, t) {format="int:4,channel"} : f32[3,4]
output q <- q
)");
  EXPECT_EQ(print(split.main), R"(lathe-ir 2
symbols B
x = input() : f32[B,4]
q = state() : f32[3,4]
y = linear(x, q) : f32[B,3]
output y <- y
)");
  EXPECT_THAT(split.sources, ElementsAre("s", "w"));
}

// As the packed weight that projects tokens, and a table of distances beside them.
TEST(SplitParameters, ComputesWhatIsKeptInBothWhereBothReadIt) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[B,4]
    w = state() : f32[3,4]
    q = quantize(w) {format="mxint:8"}
    d = state() : f32[2,4]
    p = linear(d, q)
    y = linear(x, q)
    z = linear(y, p)
    output z <- z
  )");
  const SplitGraph split = split_parameters(graph, {graph.at("q")});
  EXPECT_EQ(print(split.parameters), R"(lathe-ir 2
w = input() : f32[3,4]
q = quantize(w) {format="mxint:8"} : f32[3,4]
d = input() : f32[2,4]
p = linear(d, q) : f32[2,3]
output p <- p
)");
  EXPECT_EQ(print(split.main, "y"), "y = linear(x, q) : f32[B,3]");
  EXPECT_EQ(print(split.main, "q"), "q = quantize(w) {format=\"mxint:8\"} : f32[3,4]");
  EXPECT_EQ(print(split.main, "p"), "p = state() : f32[2,3]");
  EXPECT_THAT(split.sources, ElementsAre("w", "d"));
}

// Kernels pack states: a weight under another shape is one, too. Whoever else reads a reshaped
// state reads the state's bytes.
TEST(SplitParameters, MovesReshapesThatAreWeights) {
  const SplitGraph split = split_parameters(parse_graph(R"(
    x = input() : f32[B,4]
    w = state() : f32[3,2,2]
    s = state() : f32[2,2]
    m = reshape(w) : f32[3,4]
    r = reshape(s) : f32[4]
    y = linear(x, m)
    z = add(x, r)
    output y <- y
    output z <- z
  )"));
  EXPECT_EQ(print(split.parameters), R"(lathe-ir 2
w = input() : f32[3,2,2]
m = reshape(w) : f32[3,4]
output m <- m
)");
}

TEST(SplitParameters, LeavesWhatDependsOnInputsOrOnNothing) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[B,4]
    s = state() : f32[]
    c = constant() {values=[1.0, 2.0, 3.0, 4.0]} : f32[4]
    d = relu(c)
    q = quantize(x, s) {format="int:8"}
    y = add(q, d)
    output y <- y
  )");
  const SplitGraph split = split_parameters(graph);
  EXPECT_EQ(print(split.main), print(graph));
  EXPECT_THAT(split.parameters.outputs(), IsEmpty());
  EXPECT_THAT(split.sources, IsEmpty());
}

TEST(SplitParameters, KeepsAStateThatIsReadOnBothSides) {
  const SplitGraph split = split_parameters(parse_graph(R"(
    x = input() : f32[B,4]
    w = state() : f32[4,4]
    q = quantize(w) {format="fixed:8,4"}
    a = linear(x, q)
    b = linear(a, w)
    output y <- b
    output weight <- q
  )"));
  EXPECT_EQ(print(split.main), R"(lathe-ir 2
symbols B
x = input() : f32[B,4]
w = state() : f32[4,4]
q = state() : f32[4,4]
a = linear(x, q) : f32[B,4]
b = linear(a, w) : f32[B,4]
output y <- b
output weight <- q
)");
}

TEST(SplitParameters, HandsOverTheResultsOfANodeThatHasSeveral) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[B,4]
    w = state() : f32[8,4]
    parts = split(w) {axis=0, sizes=[3,5]}
    r = relu(parts#1)
    a = linear(x, parts#0)
    b = linear(x, r)
    output a <- a
    output b <- b
  )");
  const State state = random_state(graph, 1);
  const Feed feed = random_feed(graph, {{"B", 6}}, 2);
  CpuExecutor executor(graph, state, {});
  expect_near(executor.run(feed), make_executor(graph, state, {.device = "reference"})->run(feed),
              2e-6);
}

TEST(CpuExecutor, ShowsNoStateThatItComputedItself) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[B,4]
    w = state() : f32[3,4]
    q = quantize(w) {format="fixed:8,4"}
    y = linear(x, q)
    output y <- y
  )");
  const State state = random_state(graph, 1);
  CpuExecutor executor(graph, state, {});
  executor.run(random_feed(graph, {{"B", 2}}, 2));
  const State after = executor.state();
  ASSERT_THAT(after, ElementsAre(Pair("w", testing::_)));
  EXPECT_TRUE(identical(after.at("w"), state.at("w")));
}

TEST(CpuExecutor, RoundsAWeightAgainAfterEveryUpdate) {
  // w grows by 0.3 a step: 0.1, 0.4, 0.7 round to 0, 0.5, 0.5, then 1.
  const Graph graph = [] {
    Graph made = parse_graph(R"(
      x = input() : f32[B,1]
      w = state() : f32[1,1]
      step = constant() {values=[0.3]} : f32[]
      q = quantize(w) {format="fixed:8,1"}
      y = linear(x, q)
      more = add(w, step)
      output y <- y
    )");
    made.bind_state(made.at("w"), {made.at("more"), 0});
    return made;
  }();
  const State state{{"w", Tensor::from<float>({1, 1}, {0.1f})}};
  const Feed feed{{"x", Tensor::from<float>({1, 1}, {1})}};
  for (const char* const kind : {"reference", "cpu"}) {
    SCOPED_TRACE(kind);
    const auto executor = make_executor(graph, state, {.device = kind});
    std::vector<double> seen;
    for (int step = 0; step < 4; ++step) seen.push_back(executor->run(feed).at("y").at(0));
    EXPECT_THAT(seen, ElementsAre(0, 0.5, 0.5, 1));
  }
}

// Weights of 8 bits with a scale a row, activations of 8 bits with a zero point, a bias in fixed
// point. Numbers are multiples of powers of two small enough for every sum to be exact, so that no
// executor rounds to another code.
const char* const kPerceptron = R"(
  x = input() : f32[B,24]
  target = input() : f32[B,5]
  rate = input() : f32[]
  w0 = state() : f32[32,24]
  w0.scale = state() : f32[32]
  b0 = state() : f32[32]
  w1 = state() : f32[5,32]
  x.scale = state() : f32[]
  a.scale = state() : f32[]
  a.zero = state() : f32[]
  xq = quantize(x, x.scale) {format="int:6"}
  w0q = quantize(w0, w0.scale) {format="int:8,channel"}
  b0q = quantize(b0) {format="fixed:8,4"}
  h = linear(xq, w0q, b0q)
  a = relu(h)
  aq = quantize(a, a.scale, a.zero) {format="int:6,asymmetric"}
  w1q = quantize(w1) {format="fixed:6,5"}
  y = linear(aq, w1q)
  loss = squared_error(y, target)
  output y <- y
  output loss <- loss
)";

State perceptron_state(const Graph& graph) {
  State state = random_state(graph, 1);
  for (float& scale : state["w0.scale"].mutable_data<float>()) scale = 0x1p-7f;
  state["x.scale"] = Tensor::from<float>({}, {0x1p-5f});
  state["a.scale"] = Tensor::from<float>({}, {0x1p-3f});
  state["a.zero"] = Tensor::from<float>({}, {2});
  return state;
}

TEST(QuantizedPerceptron, HasTheSameBitsOnEveryPathThreadCountAndBatch) {
  Graph graph = parse_graph(kPerceptron);
  graph.remove_output("loss");
  run_pass("remove-dead-nodes", graph);
  const State state = perceptron_state(graph);
  for (const Isa isa : supported_isas()) {
    SCOPED_TRACE(name(isa));
    ThreadPool two(2);
    CpuExecutor alone(graph, state, {.isa = isa}), pair(graph, state, {.pool = &two, .isa = isa});
    for (const std::int64_t rows : {3, 700, 1}) {
      const Feed feed = random_feed(graph, {{"B", rows}}, 7);
      const Feed expected = make_executor(graph, state, {.device = "reference"})->run(feed);
      expect_identical(alone.run(feed), expected);
      expect_identical(pair.run(feed), expected);
    }
  }
}

// One step of SGD on every float of the perceptron, its scales included.
Graph with_training(Graph graph) {
  std::vector<Value> parameters;
  for (const char* const name : {"w0", "w0.scale", "b0", "w1", "x.scale", "a.scale"})
    parameters.push_back({graph.at(name), 0});
  const std::vector<Value> gradients = differentiate(graph, {graph.at("loss"), 0}, parameters);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Value parameter = parameters[i];
    const std::string name = graph.name(parameter.node);
    const Value step{
        graph.add(
            {.name = name + "/step", .op = "mul", .inputs = {gradients[i], {graph.at("rate"), 0}}}),
        0};
    const NodeId updated =
        graph.add({.name = name + "/updated", .op = "sub", .inputs = {parameter, step}});
    graph.bind_state(parameter.node, {updated, 0});
  }
  verify(graph);
  return graph;
}

TEST(QuantizedPerceptron, LearnsItsWeightsAndScalesAsTheReferenceDoes) {
  const Graph graph = with_training(parse_graph(kPerceptron));
  const State state = perceptron_state(graph);
  Feed feed = random_feed(graph, {{"B", 300}}, 7);
  feed["rate"] = Tensor::from<float>({}, {1e-4f});
  const auto reference = make_executor(graph, state, {.device = "reference"});
  const Feed expected = reference->run(feed);
  for (const Isa isa : supported_isas()) {
    SCOPED_TRACE(name(isa));
    ThreadPool two(2);
    CpuExecutor alone(graph, state, {.isa = isa}), pair(graph, state, {.pool = &two, .isa = isa});
    expect_near(alone.run(feed), expected, 2e-6);
    pair.run(feed);
    expect_near(alone.state(), reference->state(), 2e-6);
    expect_identical(pair.state(), alone.state());
    for (const char* const moved : {"w0", "w0.scale", "b0", "w1", "x.scale", "a.scale"})
      EXPECT_FALSE(identical(alone.state().at(moved), state.at(moved))) << moved;
    EXPECT_TRUE(identical(alone.state().at("a.zero"), state.at("a.zero")));
    // The second step rounds what the first left behind.
    expect_identical(pair.run(feed), alone.run(feed));
    expect_identical(pair.state(), alone.state());
  }
}

}  // namespace
}  // namespace lathe::engine
