#include "lathe/core/parameters.h"

#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"

namespace lathe {
namespace {

Value value(const Graph& graph, std::string_view name) {
  return {graph.at(name), 0};
}

TEST(Parameters, AreWhatParametersAndMasksAloneDecide) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[4]
    w = state() : f32[4]
    m = state() {role="mask"} : f32[4]
    r = state() {role="buffer"} : f32[4]
    masked = join(w, m)
    deep = relu(masked)
    shifted = join(w, r)
    fed = join(w, x)
    alone = relu(m)
  )");
  const Parameters parameters(graph);
  EXPECT_TRUE(parameters.contains(value(graph, "w")));
  EXPECT_TRUE(parameters.contains(value(graph, "masked")));
  EXPECT_TRUE(parameters.contains(value(graph, "deep")));
  EXPECT_FALSE(parameters.contains(value(graph, "shifted"))) << "running statistics are data";
  EXPECT_FALSE(parameters.contains(value(graph, "fed")));
  EXPECT_FALSE(parameters.contains(value(graph, "alone"))) << "a mask is no parameter";
  EXPECT_FALSE(parameters.contains(kNone));
}

TEST(Parameters, KnowTheirStates) {
  const Graph graph = parse_graph(R"(
    a = state() : f32[4]
    b = state() : f32[4]
    m = state() {role="mask"} : f32[4]
    sum = join(b, m, a)
  )");
  EXPECT_EQ(Parameters(graph).sources(value(graph, "sum")),
            (std::vector<NodeId>{graph.at("a"), graph.at("b")}));
}

TEST(FindParameterNodes, LeavesAliasesAndSymbolicSizesOut) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[B,4]
    w = state() : f32[4]
    a = relu(w)
    b = relu(x)
    c = join(a, w)
  )");
  EXPECT_EQ(find_parameter_nodes(graph), (std::set<NodeId>{graph.at("a"), graph.at("c")}));
}

}  // namespace
}  // namespace lathe
