#include "lathe/compress/linear_inputs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "lathe/compress/calibrate.h"
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

class Gptq : public testing::TestWithParam<const char*> {};

TEST_P(Gptq, LosesLessOfCorrelatedInputsThanPlainRounding) {
  io::Model model = one_linear(GetParam());
  const std::vector<double> products = correlated_products();
  const Tensor weight = model.state.at("w");
  const auto rounded = [&](const Tensor& from) {
    State state = model.state;
    state["w"] = from;
    Graph graph = model.graph;
    graph.set_output("weight", {graph.at("w/quantized"), 0});
    const Feed feed{{"x", Tensor(DType::F32, {1, 96})}};
    return engine::make_executor("reference", graph, state)->run(feed).at("weight");
  };
  const Tensor plain = rounded(weight);
  apply_gptq(model, {{"y", products}});
  const Tensor better = model.state.at("w");
  // The weights are numbers of the format already.
  EXPECT_TRUE(identical(rounded(better), better));
  const double before = output_error(weight.data<float>(), plain.data<float>(), products);
  const double after = output_error(weight.data<float>(), better.data<float>(), products);
  EXPECT_LT(after, 0.7 * before) << before;
}

INSTANTIATE_TEST_SUITE_P(, Gptq,
                         testing::Values("int:4,channel", "int:4,group=32", "int:4,asymmetric",
                                         "fixed:4,1", "mxint:4"),
                         [](const auto& test) {
                           std::string name = test.param;
                           for (char& c : name)
                             if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
                           return name;
                         });

// Tokens look up their features; two linears follow each other.
io::Model small_model() {
  io::Model model;
  model.graph = parse_graph(R"(
    input_ids = input() : i32[B,L]
    table = state() : f32[5,3]
    e = embedding(input_ids, table)
    w = state() : f32[4,3]
    b = state() : f32[4]
    h = linear(e, w, b)
    a = relu(h)
    v = state() : f32[2,4]
    c = state() : f32[2]
    y = linear(a, v, c)
    output logits <- y
  )");
  std::mt19937 random(3);
  for (const NodeId id : model.graph.nodes_of("state")) {
    Tensor tensor(DType::F32, model.graph.types(id)[0].dims({}));
    for (float& value : tensor.mutable_data<float>())
      value = static_cast<float>(random() % 1000) / 500 - 0.7f;
    model.state[model.graph.name(id)] = tensor;
  }
  return model;
}

data::TokenizedDataset texts() {
  return {.ids = {0, 1, 4, 2, 2, 3, 4, 0}, .offsets = {0, 3, 4, 8}, .labels = {0, 1, 0}};
}

TEST(MeasureInputProducts, AveragesTheProductsOfWhatALinearReads) {
  const io::Model model = small_model();
  const InputProducts products = measure_input_products(model, texts(), 256, {});
  ASSERT_EQ(products.size(), 2u);
  const std::span<const float> table = model.state.at("table").data<float>();
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) {
      double sum = 0;
      for (const std::int32_t id : texts().ids) {
        const float* const row = table.data() + static_cast<std::size_t>(id) * 3;
        sum += double{row[i]} * double{row[j]};
      }
      EXPECT_NEAR(products.at("h")[i * 3 + j], sum / 8, 1e-12);
    }
  EXPECT_EQ(products.at("y").size(), 16u);
}

// The mean over tokens of output "h" and of the logits.
std::pair<std::vector<double>, std::vector<double>> mean_outputs(const io::Model& model) {
  Graph graph = model.graph;
  graph.set_output("h", {graph.at("h"), 0});
  const Feed outputs =
      engine::make_executor("reference", graph, model.state)
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
  const io::Model original = small_model();
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

TEST(CorrectBiases, LeavesARoundedBiasAlone) {
  const io::Model original = small_model();
  io::Model model = original;
  insert_quantizers(
      model.graph, model.state,
      {{.formats = {{TensorRole::Weights, "fixed:3,1"}, {TensorRole::Bias, "fixed:8,4"}}}});
  correct_biases(original, model, texts(), 256, {});
  EXPECT_TRUE(identical(model.state.at("b"), original.state.at("b")));
}

}  // namespace
}  // namespace lathe::compress
