#include "lathe/compress/pruning/insert_masks.h"

#include <gtest/gtest.h>

#include "lathe/compress/calibrate.h"
#include "lathe/compress/packed_weights.h"
#include "lathe/core/graph_text.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/ops/evaluate_parameter.h"

namespace lathe::compress {
namespace {

Graph one_linear() {
  return parse_graph(R"(
    x = input() : f32[B,3]
    w = state() : f32[2,3]
    y = linear(x, w)
    output y <- y
  )");
}

State weights() {
  return {{"w", Tensor::from<float>({2, 3}, {1, -2, 3, 4, 5, -6})}};
}

const Tensor kMask = Tensor::from<float>({2, 3}, {1, 0, 1, 0, 1, 1});
const Tensor kMasked = Tensor::from<float>({2, 3}, {1, 0, 3, 0, 5, -6});

TEST(InsertMasks, MultipliesTheWeightAndClearsIt) {
  Graph graph = one_linear();
  State state = weights();
  insert_masks(graph, state, {{"w", kMask}});
  EXPECT_EQ(print(graph), print(parse_graph(R"(
    x = input() : f32[B,3]
    w = state() : f32[2,3]
    w.mask = state() {role="mask"} : f32[2,3]
    w/masked = mul(w, w.mask)
    y = linear(x, w/masked)
    output y <- y
  )")));
  EXPECT_TRUE(identical(state.at("w"), kMasked));
  EXPECT_TRUE(identical(state.at("w.mask"), kMask));
  EXPECT_EQ(graph.name(*find_mask(graph, graph.at("w"))), "w.mask");
}

TEST(InsertMasks, KeepsTheZerosOfAnEarlierMask) {
  Graph graph = one_linear();
  State state = weights();
  insert_masks(graph, state, {{"w", kMask}});
  const std::string before = print(graph);
  insert_masks(graph, state, {{"w", Tensor::from<float>({2, 3}, {0, 1, 1, 1, 1, 1})}});
  EXPECT_EQ(print(graph), before);
  EXPECT_TRUE(identical(state.at("w.mask"), Tensor::from<float>({2, 3}, {0, 0, 1, 0, 1, 1})));
  EXPECT_TRUE(identical(state.at("w"), Tensor::from<float>({2, 3}, {0, 0, 3, 0, 5, -6})));
}

TEST(InsertMasks, MasksATiedTableOnce) {
  Graph graph = parse_graph(R"(
    ids = input() : i32[B]
    w = state() : f32[2,3]
    e = embedding(ids, w)
    y = linear(e, w)
    output y <- y
  )");
  State state = weights();
  insert_masks(graph, state, {{"w", kMask}});
  EXPECT_EQ(graph.nodes_of("mul").size(), 1u);
  EXPECT_EQ(graph.name(graph.input(graph.at("e"), 1)), "w/masked");
  EXPECT_EQ(graph.name(graph.input(graph.at("y"), 1)), "w/masked");
}

TEST(InsertMasks, StandsBeforeRoundingToAFormatWithAZero) {
  Graph graph = parse_graph(R"(
    x = input() : f32[B,3]
    w = state() : f32[2,3]
    q = quantize(w) {format="mxint:8"}
    y = linear(x, q)
    output y <- y
  )");
  State state = weights();
  insert_masks(graph, state, {{"w", kMask}});
  EXPECT_EQ(print(graph, "q"), "q = quantize(w/masked) {format=\"mxint:8\"} : f32[2,3]");
}

TEST(InsertMasks, StandsBehindRoundingToAFormatWithoutAZero) {
  Graph graph = parse_graph(R"(
    x = input() : f32[B,3]
    w = state() : f32[2,3]
    q = quantize(w) {format="binary"}
    y = linear(x, q)
    output y <- y
  )");
  State state = weights();
  insert_masks(graph, state, {{"w", kMask}});
  EXPECT_EQ(print(graph, "q/masked"), "q/masked = mul(q, w.mask) : f32[2,3]");
  EXPECT_EQ(graph.name(graph.input(graph.at("y"), 1)), "q/masked");
  EXPECT_EQ(graph.name(*find_mask(graph, graph.at("w"))), "w.mask");
  EXPECT_TRUE(identical(ops::evaluate_parameter(graph, state, {graph.at("q/masked"), 0}),
                        Tensor::from<float>({2, 3}, {1, 0, 1, 0, 1, -1})));
}

// XNOR-Net's scale is a mean magnitude: of the weights that stay, not of all.
TEST(InsertMasks, LeavesPrunedWeightsOutOfAScale) {
  Graph graph = parse_graph(R"(
    x = input() : f32[B,3]
    w = state() : f32[2,3]
    q = quantize(w) {format="binary:scaled"}
    y = linear(x, q)
    output y <- y
  )");
  State state = weights();
  insert_masks(graph, state, {{"w", kMask}});
  EXPECT_EQ(print(graph, "q"),
            "q = quantize(w, none, none, w.mask) {format=\"binary:scaled\"} : f32[2,3]");
  // Means of 1 and 3, of 5 and 6.
  const Tensor expected = Tensor::from<float>({2, 3}, {2, 0, 2, 0, 5.5, -5.5});
  EXPECT_TRUE(
      identical(ops::evaluate_parameter(graph, state, {graph.at("q/masked"), 0}), expected));
  const std::string text = print(graph);
  EXPECT_EQ(pack_weights(graph, state), 1);
  EXPECT_TRUE(
      identical(ops::evaluate_parameter(graph, state, {graph.at("q/masked"), 0}), expected));
  unpack_weights(graph, state, {{"w", kMasked}});
  EXPECT_TRUE(
      identical(ops::evaluate_parameter(graph, state, {graph.at("q/masked"), 0}), expected));
}

TEST(InsertMasks, RefusesRowsThatAreRoundedWithoutAZeroAfterTheirLookup) {
  Graph graph = parse_graph(R"(
    ids = input() : i32[B]
    w = state() : f32[2,3]
    e = embedding(ids, w)
    q = quantize(e) {format="binary:scaled"}
    output y <- q
  )");
  State state = weights();
  EXPECT_EQ(error_text([&] {
              insert_masks(graph, state, {{"w", kMask}});
            }),
            "\"e\": its rows are rounded to binary:scaled after they are looked up, which has no "
            "zero for what is pruned\nhint: prune the model first and quantize it then");
}

}  // namespace
}  // namespace lathe::compress
