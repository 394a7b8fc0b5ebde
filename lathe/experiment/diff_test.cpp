#include "lathe/experiment/diff.h"

#include <gtest/gtest.h>

#include "lathe/compress/integer/lower_to_integer.h"
#include "lathe/core/graph_text.h"
#include "lathe/core/testing/error_text.h"

namespace lathe::experiment {
namespace {

io::Model model_of(const std::string& text) {
  io::Model model;
  model.graph = parse_graph(text);
  model.state["w"] = Tensor::from<float>({2, 2}, {0.5f, -0.25f, 1.0f, 0.3f});
  return model;
}

io::Model float_model() {
  return model_of(R"(
    symbols B
    x = input() : f32[B,2]
    w = state() : f32[2,2]
    h = relu(x) : f32[B,2]
    y = linear(h, w) : f32[B,2]
    z = neg(y) : f32[B,2]
    output z <- z
  )");
}

io::Model quantized_model() {
  return model_of(R"(
    symbols B
    x = input() : f32[B,2]
    w = state() : f32[2,2]
    w/quantized = quantize(w) {format="fixed:8,2"} : f32[2,2]
    x/quantized = quantize(x) {format="fixed:8,4"} : f32[B,2]
    h = relu(x/quantized) : f32[B,2]
    y = linear(h, w/quantized) : f32[B,2]
    y/quantized = quantize(y) {format="fixed:8,4"} : f32[B,2]
    output z <- y/quantized
  )");
}

std::vector<Feed> feeds() {
  return {{{"x", Tensor::from<float>({2, 2}, {0.5f, -1.0f, 0.25f, 1.0f})}}};
}

TEST(CompareModels, NamesTheFirstNodeThatDeviates) {
  const Comparison result = compare_models(float_model(), quantized_model(), feeds(), {});
  ASSERT_EQ(result.nodes.size(), 2u);  // h and y; z has no like
  EXPECT_EQ(result.nodes[0].node, "h");
  EXPECT_EQ(result.nodes[0].largest, 0);
  EXPECT_EQ(result.first, "y");
  // 0.3 is rounded to 0.25, and meets an input of 1 once.
  EXPECT_FLOAT_EQ(static_cast<float>(result.nodes[1].largest), 0.05f);
  EXPECT_EQ(result.nodes[1].differing, 0.25);
  EXPECT_EQ(result.unmatched, 1);
}

TEST(CompareModels, TakesIntegersForWhatTheyAreWorth) {
  io::Model integer = quantized_model();
  compress::lower_to_integer(integer.graph, integer.state);
  const Comparison result = compare_models(quantized_model(), integer, feeds(), {});
  EXPECT_EQ(result.nodes.size(), 4u);  // both quantizers of data, h and y
  EXPECT_EQ(result.first, "");
  EXPECT_EQ(result.unmatched, 0);
}

TEST(CompareModels, RefusesModelsWithNothingInCommon) {
  const io::Model other = model_of(R"(
    symbols B
    x = input() : f32[B,2]
    a = relu(x) : f32[B,2]
    output a <- a
  )");
  EXPECT_EQ(error_text([&] { compare_models(float_model(), other, feeds(), {}); }),
            "the models have no node of the same name and shape");
}

}  // namespace
}  // namespace lathe::experiment
