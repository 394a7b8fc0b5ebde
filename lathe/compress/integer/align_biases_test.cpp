#include "lathe/compress/integer/align_biases.h"

#include <gtest/gtest.h>

#include "lathe/core/error.h"
#include "lathe/core/graph_text.h"

namespace lathe::compress {
namespace {

constexpr const char* kLayer = R"(
  symbols B
  x = input() : f32[B,2]
  w = state() : f32[3,2]
  b = state() : f32[3]
  x/quantized = quantize(x) {format="fixed:8,1"} : f32[B,2]
  w/quantized = quantize(w) {format="fixed:8,2"} : f32[3,2]
  y = linear(x/quantized, w/quantized, b) : f32[B,3]
  y/quantized = quantize(y) {format="fixed:8,4"} : f32[B,3]
  output y <- y/quantized
)";

// Sums have steps of an eighth.
TEST(AlignBiases, RoundsThemToTheStepsOfTheirSums) {
  const Graph graph = parse_graph(kLayer);
  State state{{"w", Tensor(DType::F32, {3, 2})}, {"b", Tensor(DType::F32, {3})}};
  const std::span<float> bias = state.at("b").mutable_data<float>();
  bias[0] = 0.3f;
  bias[1] = -1.0625f;  // between two steps: to the even one
  bias[2] = 2.25f;
  EXPECT_EQ(align_biases(graph, state), 1);
  const std::span<const float> aligned = state.at("b").data<float>();
  EXPECT_EQ(aligned[0], 0.25f);
  EXPECT_EQ(aligned[1], -1.0f);
  EXPECT_EQ(aligned[2], 2.25f);
}

TEST(AlignBiases, LeavesThoseInFrontOfABatchNorm) {
  const Graph graph = parse_graph(R"(
    symbols B
    x = input() : f32[B,2]
    w = state() : f32[3,2]
    b = state() : f32[3]
    weight = state() : f32[3]
    bias = state() : f32[3]
    mean = state() : f32[3]
    variance = state() : f32[3]
    x/quantized = quantize(x) {format="fixed:8,1"} : f32[B,2]
    w/quantized = quantize(w) {format="fixed:8,2"} : f32[3,2]
    y = linear(x/quantized, w/quantized, b) : f32[B,3]
    z = batch_norm(y, weight, bias, mean, variance) : f32[B,3]
    z/quantized = quantize(z) {format="fixed:8,4"} : f32[B,3]
    output z <- z/quantized
  )");
  State state{{"w", Tensor(DType::F32, {3, 2})}};
  for (const char* name : {"b", "weight", "bias", "mean", "variance"}) {
    state[name] = Tensor(DType::F32, {3});
    for (float& value : state[name].mutable_data<float>()) value = 0.7f;
  }
  EXPECT_EQ(align_biases(graph, state), 0);
  EXPECT_EQ(state.at("b").data<float>()[0], 0.7f);
}

}  // namespace
}  // namespace lathe::compress
