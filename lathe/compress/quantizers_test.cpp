#include "lathe/compress/quantizers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/compress/calibrate.h"
#include "lathe/compress/insert_quantizers.h"
#include "lathe/core/graph_text.h"
#include "lathe/models/initialize.h"

namespace lathe::compress {
namespace {

using testing::ElementsAre;

TEST(BypassQuantizers, GivesTheGraphBack) {
  const char* const text = R"(lathe-ir 2
symbols B
x = input() : f32[B,4]
up.weight = state() : f32[3,4]
up = linear(x, up.weight, none) : f32[B,3]
act = relu(up) : f32[B,3]
down.weight = state() : f32[2,3]
down = linear(act, down.weight, none) : f32[B,2]
output y <- down
)";
  Graph graph = parse_graph(text);
  State state = models::initialize(graph, 1);
  insert_quantizers(graph, state,
                    {{.formats = {{TensorRole::Weights, "int:4,channel"},
                                  {TensorRole::Inputs, "int:8"},
                                  {TensorRole::Outputs, "int:8"}}}});
  std::vector<NodeId> all;
  for (const Quantizer& quantizer : find_quantizers(graph)) all.push_back(quantizer.node);
  bypass_quantizers(graph, all);
  EXPECT_EQ(print(graph), text);
}

// A format without zero has its mask after the rounding.
TEST(FindQuantizers, LooksThroughTheMaskOfARoundedWeight) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[B,4]
    w = state() : f32[3,4]
    mask = state() {role="mask"} : f32[3,4]
    signs = quantize(w) {format="binary"}
    kept = mul(signs, mask)
    y = linear(x, kept)
    output y <- y
  )");
  const std::vector<Quantizer> quantizers = find_quantizers(graph);
  ASSERT_EQ(quantizers.size(), 1u);
  EXPECT_EQ(quantizers[0].role, TensorRole::Weights);
  EXPECT_THAT(quantizers[0].layers, ElementsAre("y"));
  EXPECT_THAT(quantizers[0].sources, ElementsAre("w"));
}

TEST(SetParameterScales, LooksAtWhatAMaskLeaves) {
  Graph graph = parse_graph(R"(
    x = input() : f32[B,2]
    w = state() : f32[2,2]
    mask = state() {role="mask"} : f32[2,2]
    kept = mul(w, mask)
    y = linear(x, kept)
    output y <- y
  )");
  State state{{"w", Tensor::from<float>({2, 2}, {100, 7, 14, 100})},
              {"mask", Tensor::from<float>({2, 2}, {0, 1, 1, 0})}};
  insert_quantizers(graph, state, {{.formats = {{TensorRole::Weights, "int:4,channel"}}}});
  set_parameter_scales(graph, state, {.method = RangeRule::Method::Extremes});
  EXPECT_TRUE(identical(state.at("w.scale"), Tensor::from<float>({2}, {1, 2})));
}

TEST(SetParameterScales, GoByTheColumnsOfAProduct) {
  Graph graph = parse_graph(R"(
    x = input() : f32[B,3]
    w = state() : f32[3,2]
    y = matmul(x, w)
    output y <- y
  )");
  State state{{"w", Tensor::from<float>({3, 2}, {1, 2, 7, 4, -3, 14})}};
  insert_quantizers(graph, state, {{.formats = {{TensorRole::Weights, "int:4,channel"}}}});
  set_parameter_scales(graph, state, {.method = RangeRule::Method::Extremes});
  EXPECT_TRUE(identical(state.at("w.scale"), Tensor::from<float>({2}, {1, 2})));
}

TEST(HasZero, IsFalseOfSignsAndPowersOfTwo) {
  for (const char* const format : {"int:4", "int:8,asymmetric", "mxint:8", "nf4", "ternary"})
    EXPECT_TRUE(has_zero(*parse_format(format))) << format;
  for (const char* const format : {"binary", "binary:residual,2", "mase.log:8,bias=63"})
    EXPECT_FALSE(has_zero(*parse_format(format))) << format;
}

}  // namespace
}  // namespace lathe::compress
