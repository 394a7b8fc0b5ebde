#include "lathe/compress/gptq.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "lathe/compress/calibrate.h"
#include "lathe/compress/insert_quantizers.h"
#include "lathe/core/graph_text.h"
#include "lathe/engine/executor.h"

namespace lathe::compress {
namespace {

constexpr std::size_t kRows = 12, kColumns = 96;

io::Model one_linear(const char* format) {
  io::Model model;
  model.graph = parse_graph(R"(
    x = input() : f32[B,96]
    w = state() : f32[12,96]
    y = linear(x, w)
    output logits <- y
  )");
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  Tensor weight(DType::F32, {12, 96});
  for (float& value : weight.mutable_data<float>()) value = normal(random);
  model.state["w"] = weight;
  insert_quantizers(model.graph, model.state, {{.formats = {{TensorRole::Weights, format}}}});
  set_parameter_scales(model.graph, model.state, {});
  return model;
}

// The mean of x x^T for columns that are mixtures of 20 sources: strongly correlated.
std::vector<double> correlated_products() {
  std::mt19937 random(2);
  std::normal_distribution<double> normal;
  std::vector<double> mixture(kColumns * 20);
  for (double& value : mixture) value = normal(random);
  std::vector<double> products(kColumns * kColumns, 0.0);
  for (std::size_t i = 0; i < kColumns; ++i)
    for (std::size_t j = 0; j < kColumns; ++j) {
      for (std::size_t s = 0; s < 20; ++s)
        products[i * kColumns + j] += mixture[i * 20 + s] * mixture[j * 20 + s];
      if (i == j) products[i * kColumns + j] += 0.5;
    }
  return products;
}

// The mean square of what the linear's outputs lost.
double output_error(std::span<const float> weight, std::span<const float> rounded,
                    const std::vector<double>& products) {
  double error = 0;
  for (std::size_t r = 0; r < kRows; ++r)
    for (std::size_t i = 0; i < kColumns; ++i)
      for (std::size_t j = 0; j < kColumns; ++j) {
        const auto lost = [&](std::size_t c) {
          return double{weight[r * kColumns + c]} - double{rounded[r * kColumns + c]};
        };
        error += lost(i) * products[i * kColumns + j] * lost(j);
      }
  return error;
}

class GptqByFormat : public testing::TestWithParam<const char*> {};

TEST_P(GptqByFormat, LosesLessOfCorrelatedInputsThanPlainRounding) {
  io::Model model = one_linear(GetParam());
  const std::vector<double> products = correlated_products();
  const Tensor weight = model.state.at("w");
  const auto rounded = [&](const Tensor& from) {
    State state = model.state;
    state["w"] = from;
    Graph graph = model.graph;
    graph.set_output("weight", {graph.at("w/quantized"), 0});
    const Feed feed{{"x", Tensor(DType::F32, {1, 96})}};
    return engine::make_executor(graph, state, {.device = "reference"})->run(feed).at("weight");
  };
  const Tensor plain = rounded(weight);
  EXPECT_THAT(apply_gptq(model, {{"y", products}}), testing::IsEmpty());
  const Tensor better = model.state.at("w");
  // The weights are numbers of the format already.
  EXPECT_TRUE(identical(rounded(better), better));
  const double before = output_error(weight.data<float>(), plain.data<float>(), products);
  const double after = output_error(weight.data<float>(), better.data<float>(), products);
  EXPECT_LT(after, 0.7 * before) << before;
}

INSTANTIATE_TEST_SUITE_P(, GptqByFormat,
                         testing::Values("int:4,channel", "int:4,group=32", "int:4,asymmetric",
                                         "fixed:4,1", "mxint:4"),
                         [](const auto& test) {
                           std::string name = test.param;
                           for (char& c : name)
                             if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
                           return name;
                         });

// As GPTQ sees a layer whose inputs are all alike and strongly tied to each other.
io::Model model_of(const char* text, const char* format) {
  io::Model model;
  model.graph = parse_graph(text);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (const NodeId id : model.graph.nodes_of("state")) {
    Tensor tensor(DType::F32, model.graph.types(id)[0].dims({}));
    for (float& value : tensor.mutable_data<float>()) value = normal(random);
    model.state[model.graph.name(id)] = tensor;
  }
  insert_quantizers(model.graph, model.state, {{.formats = {{TensorRole::Weights, format}}}});
  set_parameter_scales(model.graph, model.state, {});
  return model;
}

TEST(Gptq, LeavesATiedEmbeddingAlone) {
  io::Model model = model_of(R"(
    ids = input() : i32[B]
    table = state() : f32[12,96]
    rows = embedding(ids, table)
    head = linear(rows, table)
    output logits <- head
  )",
                             "int:4,channel");
  const Tensor before = model.state.at("table");
  EXPECT_THAT(apply_gptq(model, {{"head", correlated_products()}}),
              testing::ElementsAre("\"head\": its weight \"table\" is rounded without GPTQ: "
                                   "\"rows\" reads it too"));
  EXPECT_TRUE(identical(model.state.at("table"), before));
}

// One quantizer rounds the table for both.
TEST(Gptq, LeavesARoundedTableAlone) {
  io::Model model = model_of(R"(
    ids = input() : i32[B]
    table = state() : f32[12,96]
    rounded = quantize(table) {format="fixed:4,1"}
    rows = embedding(ids, rounded)
    head = linear(rows, rounded)
    output logits <- head
  )",
                             "float");
  const Tensor before = model.state.at("table");
  EXPECT_THAT(apply_gptq(model, {{"head", correlated_products()}}),
              testing::ElementsAre("\"head\": its weight \"table\" is rounded without GPTQ: "
                                   "\"rows\" reads it too"));
  EXPECT_TRUE(identical(model.state.at("table"), before));
}

TEST(Gptq, WeighsAllLayersThatShareAWeight) {
  const char* const text = R"(
    x = input() : f32[B,96]
    w = state() : f32[12,96]
    one = linear(x, w)
    two = linear(x, w)
    output one <- one
    output two <- two
  )";
  const std::vector<double> products = correlated_products();
  std::vector<double> nothing(products.size(), 0.0);
  io::Model both = model_of(text, "int:4,channel"), first = both;
  EXPECT_THAT(apply_gptq(both, {{"one", nothing}, {"two", products}}), testing::IsEmpty());
  // What only the second layer reads decides as if it were the first that reads it.
  EXPECT_THAT(apply_gptq(first, {{"one", products}, {"two", nothing}}), testing::IsEmpty());
  EXPECT_TRUE(identical(both.state.at("w"), first.state.at("w")));
}

// Before the quantizer, and after it.
TEST(Gptq, KeepsTheHolesOfAMask) {
  for (const char* const text : {R"(
    x = input() : f32[B,96]
    w = state() : f32[12,96]
    mask = state() {role="mask"} : f32[12,96]
    kept = mul(w, mask)
    y = linear(x, kept)
    output logits <- y
  )",
                                 R"(
    x = input() : f32[B,96]
    w = state() : f32[12,96]
    mask = state() {role="mask"} : f32[12,96]
    signs = quantize(w) {format="binary"}
    kept = mul(signs, mask)
    y = linear(x, kept)
    output logits <- y
  )"}) {
    const bool is_rounded = std::string_view(text).find("signs") != std::string_view::npos;
    io::Model model = model_of(text, is_rounded ? "float" : "int:4,channel");
    for (float& value : model.state.at("mask").mutable_data<float>()) value = value > 0 ? 1 : 0;
    set_parameter_scales(model.graph, model.state, {});
    const Tensor before = model.state.at("w");
    EXPECT_THAT(apply_gptq(model, {{"y", correlated_products()}}), testing::IsEmpty());
    EXPECT_FALSE(identical(model.state.at("w"), before));
    for (std::int64_t i = 0; i < before.num_elements(); ++i)
      EXPECT_TRUE(model.state.at("mask").at(i) != 0 || model.state.at("w").at(i) == 0) << i;
  }
}

TEST(Gptq, MovesTheColumnsOfAProductAsTheRowsOfALinear) {
  io::Model linear = model_of(R"(
    x = input() : f32[B,96]
    w = state() : f32[12,96]
    y = linear(x, w)
    output logits <- y
  )",
                              "int:4,channel");
  io::Model product = model_of(R"(
    x = input() : f32[B,96]
    w = state() : f32[96,12]
    y = matmul(x, w)
    output logits <- y
  )",
                               "int:4,channel");
  const Tensor weight = linear.state.at("w");
  Tensor turned(DType::F32, {96, 12});
  for (std::size_t r = 0; r < 12; ++r)
    for (std::size_t c = 0; c < 96; ++c)
      turned.mutable_data<float>()[c * 12 + r] = weight.data<float>()[r * 96 + c];
  product.state["w"] = turned;
  set_parameter_scales(product.graph, product.state, {});
  apply_gptq(linear, {{"y", correlated_products()}});
  apply_gptq(product, {{"y", correlated_products()}});
  for (std::size_t r = 0; r < 12; ++r)
    for (std::size_t c = 0; c < 96; ++c)
      EXPECT_EQ(product.state.at("w").data<float>()[c * 12 + r],
                linear.state.at("w").data<float>()[r * 96 + c]);
}

TEST(Gptq, NamesALayerWhoseInputsAreNoRows) {
  io::Model model = model_of(R"(
    x = input() : f32[B,2,4,4]
    w = state() : f32[3,2,3,3]
    y = conv2d(x, w)
    output logits <- y
  )",
                             "int:4,channel");
  EXPECT_THAT(apply_gptq(model, {}),
              testing::ElementsAre("\"y\": its weight \"w\" is rounded without GPTQ: what its "
                                   "layer reads was not measured row by row"));
}

}  // namespace
}  // namespace lathe::compress
