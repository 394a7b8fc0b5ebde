#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"
#include "lathe/ops/test_tensors.h"

// What comparing gradients with differences cannot see: which nodes are added, unused results,
// kinks, and operands that must not get a gradient.
namespace lathe::ops {
namespace {

using testing::ElementsAre;

// Differentiates node y with the result gradients named, each a node of the graph or "none"; the
// lines that this adds and, at the end, the gradients of the operands.
std::string lines_of_gradient(std::string_view text, const std::vector<std::string>& gradients) {
  Graph graph = parse_graph(text);
  const NodeId node = graph.at("y");
  const std::vector<NodeId> before = graph.topological_order();
  std::vector<Value> values;
  for (const std::string& name : gradients)
    values.push_back(name == "none" ? kNone : Value{graph.at(name), 0});
  const std::vector<Value> results = graph.op(node).gradient(graph, node, values);
  std::string lines;
  for (const NodeId id : graph.topological_order())
    if (std::find(before.begin(), before.end(), id) == before.end())
      lines += print(graph, id) + "\n";
  for (const Value& result : results) lines += graph.name(result) + " ";
  lines.pop_back();
  return lines;
}

TEST(Gradient, OfLinearIsTwoProductsAndASumOfRows) {
  EXPECT_EQ(lines_of_gradient(R"(
    x = input() : f32[T,8]
    w = state() : f32[16,8]
    b = state() : f32[16]
    y = linear(x, w, b)
    dy = input() : f32[T,16])",
                              {"dy"}),
            "y/gradient_x = linear_input_gradient(dy, w) : f32[T,8]\n"
            "y/gradient_weight = linear_weight_gradient(dy, x) : f32[16,8]\n"
            "y/gradient_bias = sum_rows(dy) : f32[16]\n"
            "y/gradient_x y/gradient_weight y/gradient_bias");
}

TEST(Gradient, OfAddIsTheSameValueTwiceWithoutBroadcasting) {
  EXPECT_EQ(lines_of_gradient(R"(
    a = input() : f32[T,4]
    b = input() : f32[T,4]
    y = add(a, b)
    dy = input() : f32[T,4])",
                              {"dy"}),
            "dy dy");
  EXPECT_EQ(lines_of_gradient(R"(
    a = input() : f32[T,4]
    b = input() : f32[4]
    y = add(a, b)
    dy = input() : f32[T,4])",
                              {"dy"}),
            "y/gradient_b = sum_to(dy) : f32[4]\ndy y/gradient_b");
}

TEST(Gradient, OfAttentionReadsItsRandomNumbersAgain) {
  EXPECT_EQ(lines_of_gradient(R"(
    q = input() : f32[T,8]
    offsets = input() : i32[S+1]
    random = input() : i32[3]
    examples = input() : i32[S]
    y = attention(q, q, q, none, offsets, random, examples) {heads=2, dropout=0.5, site=4}
    dy = input() : f32[T,8])",
                              {"dy"}),
            "y/gradient = attention_gradient(dy, q, q, q, none, offsets, random, examples) "
            "{dropout=0.5, heads=2, site=4} : f32[T,8], f32[T,8], f32[T,8]\n"
            "y/gradient#0 y/gradient#1 y/gradient#2 none none none none");
}

TEST(Gradient, OfQuantizeIsGatedOnlyWhereTheFormatClips) {
  EXPECT_EQ(lines_of_gradient(R"(
    x = input() : f32[T,8]
    y = quantize(x) {format="fixed:8,4"}
    dy = input() : f32[T,8])",
                              {"dy"}),
            "y/gradient_x = gate_gradient(dy, x) {maximum=7.9375, minimum=-8.0} : f32[T,8]\n"
            "y/gradient_x");
  EXPECT_EQ(lines_of_gradient(R"(
    x = input() : f32[T,64]
    y = quantize(x) {format="mxint:8"}
    dy = input() : f32[T,64])",
                              {"dy"}),
            "dy");
}

TEST(Gradient, OfQuantizeLearnsTheScaleAndLeavesTheZeroPoint) {
  EXPECT_EQ(lines_of_gradient(R"(
    x = input() : f32[T,8]
    s = state() : f32[]
    z = state() : f32[]
    y = quantize(x, s, z) {format="int:8,asymmetric"}
    dy = input() : f32[T,8])",
                              {"dy"}),
            "y/gradient = learned_step_gradient(dy, x, y, s, z) {format=\"int:8,asymmetric\"} : "
            "f32[T,8], f32[]\n"
            "y/gradient#0 y/gradient#1 none");
}

TEST(Gradient, OfCastReturnsToTheOperandsType) {
  EXPECT_EQ(lines_of_gradient(R"(
    x = input() : f32[T,4]
    y = cast(x) : bf16[T,4]
    dy = input() : bf16[T,4])",
                              {"dy"}),
            "y/gradient_x = cast(dy) : f32[T,4]\ny/gradient_x");
  EXPECT_EQ(lines_of_gradient(R"(
    x = input() : i64[T]
    y = cast(x) : f32[T]
    dy = input() : f32[T])",
                              {"dy"}),
            "none");
}

TEST(Gradient, OfSplitFillsUnusedPartsWithZeros) {
  EXPECT_EQ(lines_of_gradient(R"(
    x = input() : f32[T,5]
    y = split(x) {axis=1, sizes=[2,3]}
    dy = input() : f32[T,3])",
                              {"none", "dy"}),
            "y/gradient_none = full_like(y#0) {value=0.0} : f32[T,2]\n"
            "y/gradient_x = concat(y/gradient_none, dy) {axis=1} : f32[T,5]\n"
            "y/gradient_x");
}

TEST(Gradient, OfALossIsNoneWhenOnlyItsCountIsUsed) {
  EXPECT_EQ(lines_of_gradient(R"(
    logits = input() : f32[B,3]
    labels = input() : i64[B]
    y = cross_entropy(logits, labels)
    dcount = input() : f32[])",
                              {"none", "dcount"}),
            "none none");
}

TEST(MapGradient, TakesTheLeftSideOfKinks) {
  const Tensor ones = f32({3}, {1, 1, 1});
  const Tensor x = f32({3}, {-1, 0, 1});
  EXPECT_THAT(result_of("map_gradient(f32[3], f32[3]) {function=\"relu\"}", {ones, x}),
              ElementsAre(0, 0, 1));
  EXPECT_THAT(result_of("map_gradient(f32[3], f32[3]) {function=\"abs\"}", {ones, x}),
              ElementsAre(-1, 0, 1));
  EXPECT_THAT(
      result_of("map_gradient(f32[3], f32[3]) {function=\"leaky_relu\", slope=0.5}", {ones, x}),
      ElementsAre(0.5, 0.5, 1));
  EXPECT_EQ(refusal_of("map_gradient(f32[3], f32[3]) {function=\"rleu\"}").substr(0, 33),
            "node \"y\": unknown function \"rleu\"");
}

TEST(BinaryMapGradient, HalvesTies) {
  const std::vector<Tensor> inputs = {f32({3}, {8, 8, 8}), f32({3}, {1, 2, 3}), f32({}, {2})};
  EXPECT_THAT(
      result_of("binary_map_gradient(f32[3], f32[3], f32[]) {function=\"maximum\"}", inputs),
      ElementsAre(0, 4, 8));
  EXPECT_THAT(result_of("binary_map_gradient(f32[3], f32[3], f32[]) {function=\"minimum\", "
                        "operand=1}",
                        inputs),
              ElementsAre(0, 4, 8));
}

TEST(BinaryMapGradient, KnowsPowersAtZero) {
  const std::vector<Tensor> inputs = {f32({3}, {1, 1, 1}), f32({3}, {0, 0, -2}),
                                      f32({3}, {0, 2, 3})};
  EXPECT_THAT(result_of("binary_map_gradient(f32[3], f32[3], f32[3]) {function=\"pow\"}", inputs),
              ElementsAre(0, 0, 12));
}

TEST(MaxGradient, SharesTies) {
  EXPECT_THAT(result_of("max_gradient(f32[1], f32[4])", {f32({1}, {6}), f32({4}, {5, 1, 5, 2})}),
              ElementsAre(3, 0, 3, 0));
}

TEST(MaxPoolGradient, ChoosesTheFirstOfEqualElements) {
  EXPECT_THAT(result_of("max_pool2d_gradient(f32[1,1,1,1], f32[1,1,2,2]) {kernel=[2,2]}",
                        {f32({1, 1, 1, 1}, {6}), f32({1, 1, 2, 2}, {1, 5, 5, 2})}),
              ElementsAre(0, 6, 0, 0));
}

TEST(EmbeddingGradient, AddsTheRowsOfEqualIds) {
  EXPECT_THAT(result_of("embedding_gradient(f32[3,2], i32[3]) {rows=3}",
                        {f32({3, 2}, {1, 2, 3, 4, 5, 6}), i32({3}, {2, 0, 2})}),
              ElementsAre(3, 4, 0, 0, 6, 8));
  EXPECT_EQ(message_of([] {
              evaluate("embedding_gradient(f32[1,1], i32[1]) {rows=3}",
                       {f32({1, 1}, {1}), i32({1}, {3})});
            }),
            "node \"y\": id 3 at position 0 is outside the table, which has 3 rows");
}

TEST(GatherRows, TakesRowsAndItsGradientAddsThemBack) {
  const Tensor x = f32({3, 2}, {1, 2, 3, 4, 5, 6});
  const Tensor rows = i32({2}, {2, 2});
  EXPECT_THAT(result_of("gather_rows(f32[3,2], i32[2])", {x, rows}), ElementsAre(5, 6, 5, 6));
  EXPECT_THAT(result_of("gather_rows_gradient(f32[2,2], i32[2], f32[3,2])",
                        {f32({2, 2}, {1, 2, 3, 4}), rows, x}),
              ElementsAre(0, 0, 0, 0, 4, 6));
  EXPECT_EQ(message_of([&] {
              evaluate("gather_rows(f32[3,2], i32[1])", {x, i32({1}, {-1})});
            }),
            "node \"y\": index -1 at position 0 is outside the 3 rows");
}

TEST(PackedExamples, RepeatsAnExampleForEachOfItsTokens) {
  EXPECT_THAT(result_of("packed_examples(i32[3], i32[4]) : i32[5]",
                        {i32({3}, {70, 80, 90}), i32({4}, {0, 2, 2, 5})}),
              ElementsAre(70, 70, 90, 90, 90));
}

}  // namespace
}  // namespace lathe::ops
