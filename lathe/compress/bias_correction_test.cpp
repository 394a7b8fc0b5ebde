#include "lathe/compress/bias_correction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lathe/compress/insert_quantizers.h"
#include "lathe/compress/testing/two_layers.h"
#include "lathe/engine/executor.h"

namespace lathe::compress {
namespace {

// The mean over tokens of output "h" and of the logits.
std::pair<std::vector<double>, std::vector<double>> mean_outputs(const io::Model& model) {
  Graph graph = model.graph;
  graph.set_output("h", {graph.at("h"), 0});
  const Feed outputs =
      engine::make_executor(graph, model.state, {.device = "reference"})
          ->run({{"input_ids", Tensor::from<std::int32_t>({1, 8}, {0, 1, 4, 2, 2, 3, 4, 0})}});
  const auto mean = [&](const char* name) {
    const Tensor& tensor = outputs.at(name);
    std::vector<double> sums(static_cast<std::size_t>(tensor.dims().back()), 0.0);
    for (std::int64_t i = 0; i < tensor.num_elements(); ++i)
      sums[static_cast<std::size_t>(i) % sums.size()] += tensor.at(i) / 8;
    return sums;
  };
  return {mean("h"), mean("logits")};
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::fabs(a[i] - b[i]);
  return sum;
}

TEST(CorrectBiases, TakesTheMeanErrorOutOfEachLinear) {
  const io::Model original = two_layers();
  io::Model rounded = original;
  insert_quantizers(
      rounded.graph, rounded.state,
      {{.formats = {{TensorRole::Weights, "fixed:3,1"}, {TensorRole::Inputs, "fixed:4,2"}}}});
  io::Model corrected = rounded;
  correct_biases(original, corrected, texts(), 256, {});
  const auto [h, logits] = mean_outputs(original);
  const auto [h_rounded, logits_rounded] = mean_outputs(rounded);
  const auto [h_corrected, logits_corrected] = mean_outputs(corrected);
  EXPECT_GT(distance(h, h_rounded), 0.05);
  EXPECT_LT(distance(h, h_corrected), 1e-5);  // nothing before it is rounded
  EXPECT_LT(distance(logits, logits_corrected), 0.5 * distance(logits, logits_rounded));
}

// Means of what h gives before the bias is rounded are right; the rounding leaves half a step.
TEST(CorrectBiases, CorrectsABiasThatIsRoundedItself) {
  const io::Model original = two_layers();
  io::Model rounded = original;
  insert_quantizers(
      rounded.graph, rounded.state,
      {{.formats = {{TensorRole::Weights, "fixed:3,1"}, {TensorRole::Bias, "fixed:16,8"}}}});
  io::Model corrected = rounded;
  EXPECT_THAT(correct_biases(original, corrected, texts(), 256, {}), testing::IsEmpty());
  const std::vector<double> h = mean_outputs(original).first;
  EXPECT_GT(distance(h, mean_outputs(rounded).first), 0.05);
  EXPECT_LE(distance(h, mean_outputs(corrected).first), 4 * (0x1p-9 + 1e-6));
}

TEST(CorrectBiases, GivesACorrectedBiasAScaleThatCoversIt) {
  const io::Model original = two_layers();
  io::Model model = original;
  insert_quantizers(
      model.graph, model.state,
      {{.formats = {{TensorRole::Weights, "fixed:3,1"}, {TensorRole::Bias, "int:8"}}}});
  model.state["b.scale"] = Tensor::from<float>({}, {0.001f});
  correct_biases(original, model, texts(), 256, {}, {.method = RangeRule::Method::Extremes});
  float largest = 0;
  for (const float value : model.state.at("b").data<float>())
    largest = std::max(largest, std::fabs(value));
  EXPECT_FLOAT_EQ(model.state.at("b.scale").data<float>()[0], largest / 127);
}

TEST(CorrectBiases, NamesTheLayersItLeavesOut) {
  io::Model original = two_layers();
  original.graph = parse_graph(R"(
    input_ids = input() : i32[B,L]
    table = state() : f32[5,3]
    e = embedding(input_ids, table)
    w = state() : f32[4,3]
    h = linear(e, w)
    v = state() : f32[4,4]
    b = state() : f32[4]
    y = linear(h, v, b)
    z = add(y, b)
    output logits <- z
  )");
  original.state["v"] = Tensor(DType::F32, {4, 4});
  io::Model model = original;
  insert_quantizers(model.graph, model.state, {{.formats = {{TensorRole::Weights, "fixed:3,1"}}}});
  EXPECT_THAT(correct_biases(original, model, texts(), 256, {}),
              testing::ElementsAre("\"h\": its mean error is not corrected: it has no bias",
                                   "\"y\": its mean error is not corrected: its bias \"b\" is not "
                                   "its own"));
}

}  // namespace
}  // namespace lathe::compress
