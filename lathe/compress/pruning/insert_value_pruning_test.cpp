#include "lathe/compress/pruning/insert_value_pruning.h"

#include <gtest/gtest.h>

#include "lathe/compress/lora.h"
#include "lathe/core/graph_text.h"
#include "lathe/models/initialize.h"

namespace lathe::compress {
namespace {

Graph two_readers() {
  return parse_graph(R"(
    x = input() : f32[B,4]
    h = relu(x)
    w = state() : f32[5,4]
    v = state() : f32[3,4]
    a = linear(h, w)
    b = linear(h, v)
    output a <- a
    output b <- b
  )");
}

TEST(InsertValuePruning, StandsInFrontOfLayersThatReadTheSame) {
  Graph graph = two_readers();
  insert_value_pruning(graph, graph.at("a"), 0.5);
  insert_value_pruning(graph, graph.at("b"), 0.5);
  EXPECT_EQ(graph.nodes_of("prune_values").size(), 1u);
  EXPECT_EQ(print(graph, "h/pruned"), "h/pruned = prune_values(h) {sparsity=0.5} : f32[B,4]");
  EXPECT_EQ(graph.name(graph.input(graph.at("b"), 0)), "h/pruned");
}

TEST(InsertValuePruning, GivesWayToANewShare) {
  Graph graph = two_readers();
  insert_value_pruning(graph, graph.at("a"), 0.5);
  insert_value_pruning(graph, graph.at("a"), 0.25);
  ASSERT_EQ(graph.nodes_of("prune_values").size(), 1u);
  EXPECT_EQ(graph.attribute(graph.input(graph.at("a"), 0).node).real("sparsity"), 0.25);
  EXPECT_EQ(graph.name(graph.input(graph.at("b"), 0)), "h");
}

TEST(InsertValuePruning, FeedsLoraWithTheSame) {
  Graph graph = two_readers();
  State state = models::initialize(graph, 1);
  insert_lora(graph, state, {.rank = 2, .dropout = 0.1, .targets = {"a"}}, 1);
  insert_value_pruning(graph, graph.at("a"), 0.5);
  EXPECT_EQ(find_lora(graph).size(), 1u);
}

}  // namespace
}  // namespace lathe::compress
