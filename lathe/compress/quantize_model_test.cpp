#include "lathe/compress/quantize_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "lathe/compress/testing/two_layers.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/engine/executor.h"
#include "lathe/train/array_source.h"

namespace lathe::compress {
namespace {

using testing::ElementsAre;

std::string refusal(io::Model model, const QuantizeOptions& options) {
  return error_text([&] { quantize_model(model, options, nullptr, {}); });
}

TEST(QuantizeModel, RefusesNumbersThatAreNotFinite) {
  const QuantizeOptions options{.rules = {{.formats = {{TensorRole::Weights, "int:4"}}}}};
  io::Model model = two_layers();
  model.state.at("v").mutable_data<float>()[5] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(refusal(model, options),
            "state \"v\": element 5 is nan, which no number format can hold");
  model = two_layers();
  model.state.at("b").mutable_data<float>()[0] = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(refusal(model, options),
            "state \"b\": element 0 is -inf, which no number format can hold");
}

TEST(QuantizeModel, SaysWhatItLacks) {
  EXPECT_EQ(refusal(two_layers(), {.rules = {{.formats = {{TensorRole::Attention, "int:4"}}}}}),
            "the rules give no tensor of the model a format");
  EXPECT_EQ(refusal(two_layers(),
                    {.rules = {{.formats = {{TensorRole::Weights, "int:4"}}}}, .uses_gptq = true}),
            "GPTQ needs data to calibrate on, and there is none");
  EXPECT_EQ(refusal(two_layers(), {.rules = {{.formats = {{TensorRole::Inputs, "int:4"}}}}}),
            "scales of activations are measured on data, and there is none\nhint: calibrate D "
            "gives some; formats that make their own scales, such as mxint:8 or int:8,dynamic, "
            "need none");
}

TEST(QuantizeModel, NotesWhatCouldNotBeDone) {
  io::Model model = two_layers();
  model.graph = parse_graph(R"(
    input_ids = input() : i32[B,L]
    table = state() : f32[5,3]
    e = embedding(input_ids, table)
    y = linear(e, table)
    output logits <- y
  )");
  const Tensor table = model.state.at("table");
  model.state = {{"table", table}};
  const QuantizeResult result =
      quantize_model(model,
                     {.rules = {{.formats = {{TensorRole::Weights, "int:4"}}}},
                      .corrects_bias = true,
                      .uses_gptq = true},
                     &texts(), {});
  EXPECT_THAT(result.notes,
              ElementsAre("\"y\": its weight \"table\" is rounded without GPTQ: \"e\" reads it too",
                          "\"y\": its mean error is not corrected: it has no bias"));
  EXPECT_TRUE(identical(model.state.at("table"), table));
}

// A multilayer perceptron on rows of numbers, and a convolution on small images.
TEST(QuantizeModel, CalibratesOnNumbersAsOnTexts) {
  const std::vector<float> values = {1, -2, 3, 0.5f, 4, -1, 2, 2, -3, 0, 1, 8};
  io::Model model;
  model.graph = parse_graph(R"(
    features = input() : f32[B,4]
    w = state() : f32[3,4]
    b = state() : f32[3]
    h = linear(features, w, b)
    v = state() : f32[3,2]
    y = matmul(h, v)
    output logits <- y
  )");
  model.state = {{"w", Tensor::from<float>({3, 4}, {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0})},
                 {"b", Tensor(DType::F32, {3})},
                 {"v", Tensor::from<float>({3, 2}, {1, 0, 0, 1, 1, 1})}};
  const QuantizeOptions options{.rules = {{.formats = {{TensorRole::Weights, "int:4,channel"},
                                                       {TensorRole::Inputs, "int:8"}}}},
                                .activation_range = {.method = RangeRule::Method::Extremes},
                                .corrects_bias = true,
                                .uses_gptq = true};
  train::ArraySource rows("features", {4}, values, {0, 1, 0});
  const QuantizeResult result = quantize_model(model, options, &rows, {});
  EXPECT_EQ(result.quantizers, 4);
  EXPECT_THAT(result.notes, ElementsAre("\"y\": its mean error is not corrected: it has no bias"));
  EXPECT_FLOAT_EQ(model.state.at("features.scale").data<float>()[0], 8 / 127.0f);

  model.graph = parse_graph(R"(
    image = input() : f32[B,1,2,2]
    w = state() : f32[2,1,2,2]
    b = state() : f32[2]
    h = conv2d(image, w, b)
    y = reshape(h) : f32[B,2]
    output logits <- y
  )");
  model.state = {
      {"w", Tensor::from<float>({2, 1, 2, 2}, {0.3f, -1, 0.6f, 0.2f, 1, 0.45f, 0, -0.7f})},
      {"b", Tensor(DType::F32, {2})}};
  const io::Model original = model;
  train::ArraySource images("image", {1, 2, 2}, values, {0, 1, 0});
  const QuantizeResult of_images = quantize_model(model, options, &images, {});
  EXPECT_THAT(of_images.notes, ElementsAre("\"h\": its weight \"w\" is rounded without GPTQ: what "
                                           "its layer reads was not measured row by row"));
  // The means of what both give agree: every rounding is made up for by the bias.
  const auto mean = [&](const io::Model& of) {
    const Feed outputs =
        engine::make_executor(of.graph, of.state, {.device = "reference"})
            ->run({{"image", Tensor::from<float>({3, 1, 2, 2}, std::span(values))}});
    std::vector<double> sums(2, 0.0);
    for (std::int64_t i = 0; i < 6; ++i)
      sums[static_cast<std::size_t>(i % 2)] += outputs.at("logits").at(i) / 3;
    return sums;
  };
  const std::vector<double> before = mean(original), after = mean(model);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(after[i], before[i], 1e-5);
}

}  // namespace
}  // namespace lathe::compress
