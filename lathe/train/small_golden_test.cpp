// Small models against values that PyTorch computed in float64 and tests/golden/make_golden.py
// wrote down, so that every clone compares with another framework.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "lathe/core/differentiate.h"
#include "lathe/core/graph_text.h"
#include "lathe/core/pass.h"
#include "lathe/engine/executor.h"
#include "lathe/io/model.h"
#include "lathe/io/safetensors.h"

namespace lathe::train {
namespace {

// The values compared with are exact but for their rounding to float32. Ours round each of some 60
// results on the way to a logit or back to a weight by 2^-24 of their size, which is at most 4
// times the largest of what comes out: with signs as they come, sqrt(60) * 4 * 2^-24 = 1.9e-6 of
// it.
constexpr double kTolerance = 2e-6;
// Key biases move no logit: their gradients are sums that cancel, of terms about this size.
constexpr double kLeastSize = 1e-2;

const std::filesystem::path kFolder = std::filesystem::path(LATHE_SOURCE_DIR) / "tests" / "golden";

// Every element within the tolerance of the tensor's largest.
void expect_close(const Tensor& actual, const Tensor& expected, const std::string& name) {
  ASSERT_EQ(actual.num_elements(), expected.num_elements()) << name;
  double largest = kLeastSize;
  for (std::int64_t i = 0; i < expected.num_elements(); ++i)
    largest = std::max(largest, std::fabs(expected.at(i)));
  for (std::int64_t i = 0; i < expected.num_elements(); ++i)
    ASSERT_NEAR(actual.at(i), expected.at(i), kTolerance * largest) << name << "[" << i << "]";
}

// Makes the gradients of `loss` with respect to these nodes outputs, named gradient.NODE.
void add_gradients(Graph& graph, const std::vector<NodeId>& nodes) {
  std::vector<Value> targets;
  for (const NodeId id : nodes) targets.push_back({id, 0});
  const std::vector<Value> gradients = differentiate(graph, *graph.output("loss"), targets);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    ASSERT_FALSE(gradients[i].is_none()) << graph.name(nodes[i]);
    graph.set_output("gradient." + graph.name(nodes[i]), gradients[i]);
  }
}

// The rows of a padded batch one after another, without their padding.
Tensor packed(const Tensor& padded, const Tensor& mask) {
  const std::int64_t width = padded.num_elements() / mask.num_elements();
  std::vector<float> values;
  for (std::int64_t token = 0; token < mask.num_elements(); ++token)
    for (std::int64_t i = 0; i < width && mask.at(token) != 0; ++i)
      values.push_back(static_cast<float>(padded.at(token * width + i)));
  const auto count = static_cast<std::int64_t>(values.size());
  return Tensor::from<float>({count}, std::span<const float>(values));
}

struct Case {
  const char* executor;
  bool is_packed;
};

class SmallGolden : public testing::TestWithParam<Case> {};

TEST_P(SmallGolden, BertAgreesWithPyTorchForwardAndBackward) {
  const io::Model model = io::load_model((kFolder / "bert").string(), {.task = "classify"});
  const auto expected = io::SafetensorsFile::open(kFolder / "bert" / "expected.safetensors");
  EXPECT_TRUE(model.fresh.empty());
  Graph graph = model.graph;
  graph.set_output("hidden.0", {graph.at("bert.embeddings.dropout"), 0});
  for (const int layer : {0, 1})
    graph.set_output(fmt::format("hidden.{}", layer + 1),
                     {graph.at(fmt::format("bert.encoder.layer.{}.output.LayerNorm", layer)), 0});
  run_pass("remove-dropout", graph);
  if (GetParam().is_packed) run_pass("pack-sequences", graph);
  add_gradients(graph, graph.nodes_of("state"));

  const Tensor mask = expected.tensor("attention_mask");
  Feed feed;
  feed["labels"] = expected.tensor("labels");
  feed["input_ids"] = expected.tensor("input_ids");
  if (GetParam().is_packed) {
    std::vector<std::int32_t> offsets{0};
    for (std::int64_t row = 0; row < mask.dim(0); ++row) {
      offsets.push_back(offsets.back());
      for (std::int64_t i = 0; i < mask.dim(1); ++i)
        offsets.back() += static_cast<std::int32_t>(mask.at(row * mask.dim(1) + i));
    }
    feed["input_ids"] = packed(feed["input_ids"], mask).converted(DType::I32);
    feed["offsets"] = Tensor::from<std::int32_t>({static_cast<std::int64_t>(offsets.size())},
                                                 std::span<const std::int32_t>(offsets));
  } else {
    feed["attention_mask"] = mask;
  }
  const Feed outputs =
      engine::make_executor(graph, model.state, {.device = GetParam().executor})->run(feed);

  int num_gradients = 0;
  for (const io::TensorInfo& info : expected.tensors()) {
    const std::string& name = info.name;
    if (name == "input_ids" || name == "attention_mask" || name == "labels") continue;
    num_gradients += name.starts_with("gradient.") ? 1 : 0;
    Tensor values = expected.tensor(name);
    Tensor ours = outputs.at(name);
    // What a padded batch holds beyond a row's end is nobody's matter.
    if (name.starts_with("hidden.")) {
      values = packed(values, mask);
      if (!GetParam().is_packed) ours = packed(ours, mask);
    }
    expect_close(ours, values, name);
  }
  EXPECT_EQ(num_gradients, 41);
}

TEST_P(SmallGolden, CausalBlockAgreesWithPyTorchForwardAndBackward) {
  const auto expected = io::SafetensorsFile::open(kFolder / "causal_block.safetensors");
  const std::string text = R"(
    x = input() : f32[{tokens},8]
    {offsets}
    norm_1.weight = state() : f32[8]
    norm_1.bias = state() : f32[8]
    qkv.weight = state() : f32[24,8]
    qkv.bias = state() : f32[24]
    projection.weight = state() : f32[8,8]
    projection.bias = state() : f32[8]
    norm_2.weight = state() : f32[8]
    norm_2.bias = state() : f32[8]
    up.weight = state() : f32[16,8]
    up.bias = state() : f32[16]
    down.weight = state() : f32[8,16]
    down.bias = state() : f32[8]
    norm_1 = layer_norm(x, norm_1.weight, norm_1.bias) {eps=1e-5}
    qkv = linear(norm_1, qkv.weight, qkv.bias)
    heads = split(qkv) {axis=-1, sizes=[8,8,8]}
    mixed = attention(heads#0, heads#1, heads#2{operands}) {heads=2, causal=true}
    projection = linear(mixed, projection.weight, projection.bias)
    h = add(x, projection)
    norm_2 = layer_norm(h, norm_2.weight, norm_2.bias) {eps=1e-5}
    up = linear(norm_2, up.weight, up.bias)
    active = gelu(up) {approximate="tanh"}
    down = linear(active, down.weight, down.bias)
    y = add(h, down)
    squares = mul(y, y)
    loss = sum(squares)
    output y <- y
    output loss <- loss)";
  const auto with = [](std::string whole, const std::string& what, const std::string& value) {
    return whole.replace(whole.find(what), what.size(), value);
  };
  const bool is_packed = GetParam().is_packed;
  Graph graph = parse_graph(with(with(with(text, "{tokens}", is_packed ? "T" : "B,L"), "{offsets}",
                                      is_packed ? "offsets = input() : i32[S+1]" : ""),
                                 "{operands}", is_packed ? ", none, offsets" : ""));
  std::vector<NodeId> targets = graph.nodes_of("state");
  targets.push_back(graph.at("x"));
  add_gradients(graph, targets);

  State state;
  for (const NodeId id : graph.nodes_of("state"))
    state[graph.name(id)] = expected.tensor(graph.name(id));
  Feed feed;
  feed["x"] = expected.tensor("x");
  if (is_packed) {
    const auto values = feed["x"].data<float>();
    feed["x"] = Tensor::from<float>({10, 8}, values);
    feed["offsets"] = Tensor::from<std::int32_t>({3}, {0, 5, 10});
  }
  const Feed outputs =
      engine::make_executor(graph, state, {.device = GetParam().executor})->run(feed);
  EXPECT_EQ(outputs.size(), 15u);
  for (const auto& [name, values] : outputs) expect_close(values, expected.tensor(name), name);
}

INSTANTIATE_TEST_SUITE_P(EveryExecutor, SmallGolden,
                         testing::Values(Case{"reference", false}, Case{"reference", true},
                                         Case{"cpu", false}, Case{"cpu", true}),
                         [](const auto& test) {
                           return fmt::format("{}_{}", test.param.executor,
                                              test.param.is_packed ? "packed" : "padded");
                         });

}  // namespace
}  // namespace lathe::train
