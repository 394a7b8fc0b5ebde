#include "lathe/compress/calibrate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/compress/insert_quantizers.h"
#include "lathe/compress/quantize_model.h"
#include "lathe/core/graph_text.h"
#include "lathe/core/interrupt.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/train/text_source.h"

namespace lathe::compress {
namespace {

using testing::ElementsAre;

// Each token is half a row of the table; the last row is never looked up.
io::Model lookup_model() {
  io::Model model;
  model.graph = parse_graph(R"(
    input_ids = input() : i32[B,L]
    table = state() : f32[4,2]
    e = embedding(input_ids, table)
    half = constant() {values=[0.5]} : f32[]
    a = mul(e, half)
    w = state() : f32[2,2]
    h = linear(a, w)
    output logits <- h
  )");
  model.state["table"] = Tensor::from<float>({4, 2}, {2, -4, 6, 8, -10, 12, 200, 200});
  model.state["w"] = Tensor::from<float>({2, 2}, {0.5f, -1, 2, 0});
  return model;
}

// Three texts of two, one and two tokens.
train::ExampleSource& texts() {
  static train::TokenizedTexts source(
      {.ids = {0, 1, 0, 2, 2}, .offsets = {0, 2, 3, 5}, .labels = {0, 1, 0}}, {});
  return source;
}

io::Model with_inputs(const char* format) {
  io::Model model = lookup_model();
  insert_quantizers(model.graph, model.state, {{.formats = {{TensorRole::Inputs, format}}}});
  return model;
}

constexpr RangeRule kExtremes{.method = RangeRule::Method::Extremes};

TEST(ObserveActivations, SeesTheRangeOfWhatIsFedAndNothingElse) {
  const io::Model model = with_inputs("int:8");
  const auto all = observe_activations(model, texts(), 256, {});
  ASSERT_EQ(all.size(), 1u);
  const Observation& seen = all.at("a/quantized");
  EXPECT_EQ(seen.minimum, -5);
  EXPECT_EQ(seen.maximum, 6);
  EXPECT_EQ(seen.count, 10);
  EXPECT_THAT(seen.sample, testing::UnorderedElementsAre(1, -2, 3, 4, 1, -2, -5, 6, -5, 6));
  EXPECT_EQ(seen.rows.size(), 10u);
  const Observation first = observe_activations(model, texts(), 1, {}).at("a/quantized");
  EXPECT_EQ(first.minimum, -2);
  EXPECT_EQ(first.maximum, 4);
  EXPECT_EQ(first.count, 4);
}

TEST(ObserveActivations, DoesNotLookAtNumbersThatAreNone) {
  io::Model model = with_inputs("int:8");
  model.state["table"].mutable_data<float>()[4] = std::numeric_limits<float>::quiet_NaN();
  model.state["table"].mutable_data<float>()[5] = std::numeric_limits<float>::infinity();
  const Observation seen = observe_activations(model, texts(), 256, {}).at("a/quantized");
  EXPECT_EQ(seen.minimum, -2);
  EXPECT_EQ(seen.maximum, 4);
  EXPECT_EQ(seen.count, 6);
}

TEST(ObserveActivations, StopsWhenAskedTo) {
  EXPECT_THROW(observe_activations(with_inputs("int:8"), texts(), 256, {},
                                   [](std::int64_t) { return false; }),
               Interrupted);
}

TEST(SetActivationScales, CoversWhatWasSeen) {
  io::Model model = with_inputs("int:8");
  const auto seen = observe_activations(model, texts(), 256, {});
  set_activation_scales(model.graph, model.state, seen, kExtremes);
  EXPECT_FLOAT_EQ(model.state.at("a.scale").data<float>()[0], 6.0f / 127);

  io::Model shifted = with_inputs("int:8,asymmetric");
  set_activation_scales(shifted.graph, shifted.state, seen, kExtremes);
  EXPECT_FLOAT_EQ(shifted.state.at("a.scale").data<float>()[0], 11.0f / 255);
  EXPECT_EQ(shifted.state.at("a.zero").at(0), 116);  // 5 of 11 parts of 255
}

TEST(SetActivationScales, NamesATensorThatWasNeverSeen) {
  io::Model model = with_inputs("int:8");
  EXPECT_EQ(error_text([&] { set_activation_scales(model.graph, model.state, {}, kExtremes); }),
            "\"a\" held no finite number on the calibration data");
}

TEST(SetParameterScales, TakesEachRowsLargestMagnitude) {
  io::Model model = lookup_model();
  insert_quantizers(
      model.graph, model.state,
      {{.formats = {{TensorRole::Weights, "int:4,channel"}, {TensorRole::Embeddings, "int:8"}}}});
  set_parameter_scales(model.graph, model.state, kExtremes);
  EXPECT_THAT(model.state.at("w.scale").data<float>(),
              ElementsAre(testing::FloatEq(1.0f / 7), testing::FloatEq(2.0f / 7)));
  EXPECT_FLOAT_EQ(model.state.at("e.scale").data<float>()[0], 200.0f / 127);
  EXPECT_FALSE(needs_calibration(model.graph));
}

TEST(QuantizeModel, MeasuresScalesAndReportsWhatWasSeen) {
  io::Model model = lookup_model();
  QuantizeOptions options;
  options.rules = {
      {.by = QuantizationRule::By::Name,
       .match = "nobody",
       .formats = {{TensorRole::Inputs, "int:8"}},
       .place = "r.toml:1"},
      {.formats = {{TensorRole::Weights, "int:8,channel"}, {TensorRole::Inputs, "int:8"}}}};
  options.parameter_range = options.activation_range = kExtremes;
  const QuantizeResult result = quantize_model(model, options, &texts(), {});
  EXPECT_EQ(result.quantizers, 2);
  EXPECT_THAT(result.unused_rules, ElementsAre("r.toml:1: nobody"));
  EXPECT_THAT(result.observations, ElementsAre(testing::Key("a/quantized")));
  EXPECT_FLOAT_EQ(model.state.at("a.scale").data<float>()[0], 6.0f / 127);
  EXPECT_FLOAT_EQ(model.state.at("w.scale").data<float>()[0], 1.0f / 127);
}

}  // namespace
}  // namespace lathe::compress
