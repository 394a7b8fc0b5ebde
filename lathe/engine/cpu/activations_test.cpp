#include "lathe/engine/cpu/activations.h"

#include <fmt/format.h>

#include <set>

#include "lathe/engine/cpu/step.h"
#include "lathe/engine/lower.h"
#include "lathe/engine/testing/executor_cases.h"

namespace lathe::engine {
namespace {

std::string attributes_of(const Activation& activation) {
  return activation.approximate.empty() ? ""
                                        : fmt::format("approximate=\"{}\"", activation.approximate);
}

TEST(Activations, AreEveryFunctionOfTheKernelsOnce) {
  std::set<Unary> functions;
  std::set<std::string_view> names;
  for (const Activation& activation : activations()) {
    EXPECT_TRUE(functions.insert(activation.function).second) << activation.name;
    EXPECT_TRUE(names.insert(activation.name).second) << activation.name;
  }
  for (int function = 1; function <= static_cast<int>(Unary::Reciprocal); ++function)
    EXPECT_TRUE(functions.contains(static_cast<Unary>(function))) << function;
}

// Positive numbers are in the domain of all of them; roundings of results near 1.
TEST(Activations, AgreeWithTheReferenceForwardAndBackward) {
  for (const Activation& activation : activations()) {
    SCOPED_TRACE(activation.name);
    std::string attributes = attributes_of(activation);
    const Graph forward = parse_graph(fmt::format(R"(
      x = input() : f32[T,5]
      y = {}(x) {{{}}}
      output y <- y)",
                                                  activation.op, attributes));
    if (!attributes.empty()) attributes = ", " + attributes;
    const Graph backward = parse_graph(fmt::format(R"(
      dy = input() : f32[T,5]
      x = input() : f32[T,5]
      y = map_gradient(dy, x) {{function="{}"{}}}
      output y <- y)",
                                                   activation.op, attributes));
    for (const Graph& graph : {forward, backward}) {
      Feed feed = random_feed(graph, {{"T", 7}}, 2);
      for (float& value : feed.at("x").mutable_data<float>()) value = 0.25f + std::abs(value);
      expect_near(make_executor(graph, {})->run(feed),
                  make_executor(graph, {}, {.device = "reference"})->run(feed), 2e-6);
      const NodeId y = graph.at("y");
      const bool has_step =
          Registry<CpuKernel>::instance().at(graph.op(y).name, "kernel").make(graph, y) != nullptr;
      EXPECT_EQ(has_step, graph.is(y, "map_gradient") ? activation.has_backward : true);
    }
  }
}

TEST(Activations, AreFusedIntoProductsWhereTheTableSaysSo) {
  for (const Activation& activation : activations()) {
    SCOPED_TRACE(activation.name);
    const Graph graph = parse_graph(fmt::format(R"(
      x = input() : f32[T,4]
      w = state() : f32[5,4]
      h = linear(x, w, none)
      y = {}(h) {{{}}}
      output y <- y)",
                                                activation.op, attributes_of(activation)));
    const Graph lowered = lower(graph, find_backend("cpu"));
    const std::vector<NodeId> fused = lowered.nodes_of("fused_linear");
    ASSERT_EQ(fused.size(), activation.is_in_epilogue ? 1u : 0u);
    if (fused.empty()) continue;
    EXPECT_EQ(lowered.attribute(fused[0]).text("activation"), activation.name);
    const State state = random_state(graph, 3);
    const Feed feed = random_feed(graph, {{"T", 7}}, 2);
    expect_near(make_executor(graph, state)->run(feed),
                make_executor(graph, state, {.device = "reference"})->run(feed), 2e-6);
  }
}

}  // namespace
}  // namespace lathe::engine
