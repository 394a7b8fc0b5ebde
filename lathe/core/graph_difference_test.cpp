#include "lathe/core/graph_difference.h"

#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"

namespace lathe {
namespace {

const char* const kGraph = R"(
  x = input() : f32[4]
  w = state() : f32[4]
  y = relu(x) : f32[4]
  z = add(y, w) : f32[4]
  output y <- z
)";

TEST(DescribeDifference, FindsNoneWhereOnlyTheOrderDiffers) {
  const Graph other = parse_graph(R"(
    w = state() : f32[4]
    x = input() : f32[4]
    y = relu(x) : f32[4]
    z = add(y, w) : f32[4]
    output y <- z
  )");
  EXPECT_EQ(describe_difference(parse_graph(kGraph), other), std::nullopt);
}

TEST(DescribeDifference, NamesANodeThatWasAddedOrRemoved) {
  const Graph expected = parse_graph(kGraph);
  Graph graph = expected;
  graph.add({.name = "extra", .op = "relu", .inputs = {{graph.at("z"), 0}}});
  EXPECT_EQ(describe_difference(graph, expected), "node \"extra\" (relu) was added");
  EXPECT_EQ(describe_difference(expected, graph), "node \"extra\" (relu) was removed");
}

TEST(DescribeDifference, NamesANodeThatReadsSomethingElse) {
  const Graph expected = parse_graph(kGraph);
  Graph graph = expected;
  graph.set_input(graph.at("z"), 0, {graph.at("x"), 0});
  EXPECT_EQ(describe_difference(graph, expected),
            "\"z = add(x, w) : f32[4]\" instead of \"z = add(y, w) : f32[4]\"");
}

TEST(DescribeDifference, NamesAnOutputThatComesFromElsewhere) {
  const Graph expected = parse_graph(kGraph);
  Graph graph = expected;
  graph.set_output("y", {graph.at("y"), 0});
  EXPECT_EQ(describe_difference(graph, expected), "output \"y\" is \"y\" instead of \"z\"");
  graph = expected;
  graph.set_output("second", {graph.at("y"), 0});
  EXPECT_EQ(describe_difference(graph, expected), "output \"second\" is \"y\" instead of nothing");
}

TEST(DescribeDifference, NamesAStateThatIsUpdated) {
  const Graph expected = parse_graph(kGraph);
  Graph graph = expected;
  graph.bind_state(graph.at("w"), {graph.at("w"), 0});
  EXPECT_EQ(describe_difference(graph, expected), "state \"w\" takes \"w\" instead of nothing");
}

}  // namespace
}  // namespace lathe
