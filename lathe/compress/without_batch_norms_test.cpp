#include "lathe/compress/without_batch_norms.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lathe/core/graph_text.h"
#include "lathe/engine/executor.h"
#include "lathe/io/portable_weights.h"

namespace lathe::compress {
namespace {

Graph normed() {
  return parse_graph(R"(
    x = input() : f32[B,1,3,3]
    w = state() : f32[2,1,2,2]
    k = state() {role="mask"} : f32[2,1,2,2]
    g = state() : f32[2]
    s = state() : f32[2]
    m = state() {role="buffer"} : f32[2]
    v = state() {role="buffer"} : f32[2]
    kept = mul(w, k) : f32[2,1,2,2]
    c = conv2d(x, kept) : f32[B,2,2,2]
    n = batch_norm(c, g, s, m, v) : f32[B,2,2,2]
    output y <- n
  )");
}

State values() {
  return {{"w", Tensor::from<float>({2, 1, 2, 2}, {1, 2, 3, 4, -1, 0.5, 2, -3})},
          {"k", Tensor::from<float>({2, 1, 2, 2}, {1, 0, 1, 1, 0, 1, 1, 1})},
          {"g", Tensor::from<float>({2}, {0.5, -2})},
          {"s", Tensor::from<float>({2}, {1, 3})},
          {"m", Tensor::from<float>({2}, {0.25, -1})},
          {"v", Tensor::from<float>({2}, {4, 0.1f})}};
}

TEST(FoldBatchNorms, GivesTheSameNumbersByFewerStates) {
  Graph graph = normed();
  State state = values();
  const Feed feed{{"x", Tensor::from<float>({1, 1, 3, 3}, {1, -2, 3, 0, 5, -1, 2, 2, 7})}};
  const Tensor before =
      engine::make_executor(graph, state, {.device = "reference"})->run(feed).at("y");
  EXPECT_EQ(fold_batch_norms(graph, state), 1);
  EXPECT_EQ(fold_batch_norms(graph, state), 0);
  EXPECT_EQ(print(graph), R"(lathe-ir 2
symbols B
x = input() : f32[B,1,3,3]
w = state() : f32[2,1,2,2]
k = state() {role="mask"} : f32[2,1,2,2]
kept = mul(w, k) : f32[2,1,2,2]
c.bias = state() {init="zeros"} : f32[2]
c = conv2d(x, kept, c.bias) : f32[B,2,2,2]
output y <- c
)");
  EXPECT_EQ(state.size(), 3u);
  const Tensor after =
      engine::make_executor(graph, state, {.device = "reference"})->run(feed).at("y");
  // Weights and biases are rounded once more, to 24 bits: 8 products of at most 60 each.
  for (std::int64_t i = 0; i < after.num_elements(); ++i)
    EXPECT_NEAR(after.at(i), before.at(i), 8 * 60 * 0x1p-23);
}

TEST(FoldBatchNorms, IsWhatThePlanForInferenceDoes) {
  const Feed feed{{"x", Tensor::from<float>({1, 1, 3, 3}, {1, -2, 3, 0, 5, -1, 2, 2, 7})}};
  const Tensor expected =
      engine::make_executor(normed(), values(), {.device = "reference"})->run(feed).at("y");
  const Tensor got =
      engine::make_executor(normed(), values(), {.device = "cpu"})->run(feed).at("y");
  for (std::int64_t i = 0; i < got.num_elements(); ++i)
    EXPECT_NEAR(got.at(i), expected.at(i), 8 * 60 * 0x1p-23);
}

TEST(RestoreBatchNorms, GivesOtherProgramsTheFamilysGraph) {
  io::Model model = io::load_model("resnet:18,3x8x8");
  for (auto& [name, tensor] : model.state)  // norms that do something
    if (name.ends_with("running_var") || name.ends_with("normalization.bias"))
      for (float& value : tensor.mutable_data<float>()) value += 0.5f;
  const Feed feed{
      {"pixel_values", Tensor::from<float>({1, 3, 8, 8}, std::vector<float>(192, 0.5f))}};
  const auto answers = [&](const Graph& graph, const State& state) {
    return engine::make_executor(graph, state, {.device = "cpu"})->run(feed).at("logits");
  };
  const Tensor before = answers(model.graph, model.state);
  EXPECT_THROW(
      {
        io::Model folded = model;
        fold_batch_norms(folded.graph, folded.state);
        io::portable_weights(folded);
      },
      UserError);
  EXPECT_EQ(fold_batch_norms(model.graph, model.state), 20);
  EXPECT_EQ(restore_batch_norms(model), 20);
  EXPECT_EQ(restore_batch_norms(model), 0);
  const State weights = io::portable_weights(model);
  EXPECT_EQ(weights.size(), io::load_model("resnet:18,3x8x8").state.size());
  const Tensor after = answers(model.graph, weights);
  // Two roundings more a layer, of 20.
  for (std::int64_t i = 0; i < after.num_elements(); ++i)
    EXPECT_NEAR(after.at(i), before.at(i), 20 * 4 * 0x1p-23 * (1 + std::abs(before.at(i))));
}

}  // namespace
}  // namespace lathe::compress
