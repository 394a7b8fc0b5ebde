#include "lathe/compress/masked_lora.h"

#include <gtest/gtest.h>

#include <random>

#include "lathe/compress/lora_adapter.h"
#include "lathe/compress/pruning/insert_masks.h"
#include "lathe/core/graph_text.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/engine/executor.h"
#include "lathe/io/model.h"
#include "lathe/models/initialize.h"

namespace lathe::compress {
namespace {

constexpr const char* kLinear = R"(
    x = input() : f32[B,4]
    w = state() : f32[5,4]
    b = state() : f32[5]
    y = linear(x, w, b)
    output y <- y
  )";
// Weights as [inputs, outputs].
constexpr const char* kProduct = R"(
    x = input() : f32[B,4]
    w = state() : f32[4,5]
    y = matmul(x, w)
    output y <- y
  )";

Tensor some_mask(const Tensor& like) {
  Tensor mask(DType::F32, like.dims());
  const std::span<float> values = mask.mutable_data<float>();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % 3 == 1 ? 0 : 1;
  return mask;
}

void fill(Tensor& tensor, unsigned seed) {
  std::mt19937 random(seed);
  for (float& value : tensor.mutable_data<float>())
    value = static_cast<float>(random() % 1000) / 500 - 1;
}

Tensor answer(const Graph& graph, const State& state) {
  const Feed feed{{"x", Tensor::from<float>({2, 4}, {1, -2, 3, 0.5, 0.25, 1, -1, 2})}};
  return engine::make_executor(graph, state, {.device = "reference"})->run(feed).at("y");
}

// The weight with its path's product added, by the definition.
Tensor sum_of(const Graph& graph, const State& state, const std::vector<LoraPath>& paths) {
  State values{{"w", state.at("w")}};
  EXPECT_EQ(paths.size(), 1u);
  add_lora_products(graph, state, values);
  return values.at("w");
}

class MaskedLora : public testing::TestWithParam<const char*> {
 protected:
  MaskedLora() : graph_(parse_graph(GetParam())), state_(models::initialize(graph_, 1)) {
    for (auto& [name, tensor] : state_) fill(tensor, 3);
  }
  void add_path() {
    insert_lora(graph_, state_, {.rank = 2, .dropout = 0.1, .targets = {"y"}}, 1);
    fill(state_.at(lora_b_name("y")), 5);
  }
  void add_mask() { insert_masks(graph_, state_, {{"w", some_mask(state_.at("w"))}}); }

  Graph graph_;
  State state_;
};

TEST_P(MaskedLora, IsCoveredWhicheverCameFirst) {
  Graph other = graph_;
  State other_state = state_;
  add_path();
  add_mask();
  insert_masks(other, other_state, {{"w", some_mask(other_state.at("w"))}});
  insert_lora(other, other_state, {.rank = 2, .dropout = 0.1, .targets = {"y"}}, 1);
  fill(other_state.at(lora_b_name("y")), 5);
  EXPECT_EQ(print(other, "y/lora_covered"), print(graph_, "y/lora_covered"));
  EXPECT_TRUE(identical(answer(other, other_state), answer(graph_, state_)));
}

TEST_P(MaskedLora, LeavesHolesInTheSum) {
  add_mask();
  add_path();
  const std::vector<LoraPath> paths = find_lora(graph_);
  ASSERT_EQ(paths.size(), 1u);
  EXPECT_EQ(paths[0].rank, 2);
  EXPECT_EQ(paths[0].dropout_rate, 0.1);
  EXPECT_EQ(graph_.name(paths[0].mask), "w.mask");
  // The same as the plain model with the masked sum as its weight.
  State plain{{"w", sum_of(graph_, state_, paths)}};
  if (state_.contains("b")) plain["b"] = state_.at("b");
  const Tensor mask = some_mask(plain.at("w"));
  for (std::size_t i = 0; i < mask.data<float>().size(); ++i)
    plain.at("w").mutable_data<float>()[i] *= mask.data<float>()[i];
  const Tensor expected = answer(parse_graph(GetParam()), plain), got = answer(graph_, state_);
  // Sums of four products of numbers below 3, in another order, in double: one rounding apart.
  for (std::size_t i = 0; i < 10; ++i)
    EXPECT_NEAR(got.data<float>()[i], expected.data<float>()[i], 1e-5);
}

TEST_P(MaskedLora, FusesToTheMaskedGraphOfBefore) {
  add_mask();
  const std::string before = print(graph_);
  add_path();
  const Tensor paired = answer(graph_, state_);
  EXPECT_EQ(fuse_lora(graph_, state_), 1);
  EXPECT_EQ(print(graph_), before);
  const Tensor mask = some_mask(state_.at("w"));
  for (std::size_t i = 0; i < mask.data<float>().size(); ++i)
    EXPECT_EQ(state_.at("w").data<float>()[i] == 0, mask.data<float>()[i] == 0) << i;
  const Tensor fused = answer(graph_, state_);
  for (std::size_t i = 0; i < 10; ++i)
    EXPECT_NEAR(fused.data<float>()[i], paired.data<float>()[i], 1e-5);
}

TEST_P(MaskedLora, IsTakenAwayWhole) {
  add_mask();
  const std::string before = print(graph_);
  add_path();
  remove_lora(graph_);
  EXPECT_EQ(print(graph_), before);
}

TEST_P(MaskedLora, IsNoAdapterOfOtherPrograms) {
  add_mask();
  add_path();
  io::Model model;
  model.graph = graph_;
  model.state = state_;
  EXPECT_EQ(error_text([&] { save_adapter("/nowhere", model, {}, "base"); }),
            "linear \"y\": a mask covers its LoRA path, which an adapter has no place for");
}

// What is rounded is A and B, or what lies between them: a matrix B . A has neither.
TEST(RoundedLora, IsNotCoveredByAMask) {
  for (const char* const rounded : {"y/lora_A", "y/lora_down"}) {
    Graph graph = parse_graph(kLinear);
    State state = models::initialize(graph, 1);
    insert_lora(graph, state, {.rank = 2, .targets = {"y"}}, 1);
    const LoraPath path = find_lora(graph).front();
    const NodeId node = std::string(rounded) == "y/lora_A" ? path.a : path.down;
    const NodeId reader = std::string(rounded) == "y/lora_A" ? path.down : path.up;
    const Value added{
        graph.insert_after(node, {.name = std::string(rounded) + "/quantized",
                                  .op = "quantize",
                                  .inputs = {{node, 0}},
                                  .attributes = {{"format", std::string("mxint:8")}}}),
        0};
    graph.set_input(reader, node == path.a ? 1 : 0, added);
    EXPECT_EQ(error_text([&] {
                insert_masks(graph, state, {{"w", some_mask(state.at("w"))}});
              }),
              "linear \"y\": its LoRA path is rounded, which a mask cannot cover\nhint: fuse LoRA "
              "into the float model (lathe lora fuse), prune that, then quantize")
        << rounded;
  }
}

INSTANTIATE_TEST_SUITE_P(BothLayouts, MaskedLora, testing::Values(kLinear, kProduct),
                         [](const auto& one) { return one.index == 0 ? "linear" : "matmul"; });

}  // namespace
}  // namespace lathe::compress
