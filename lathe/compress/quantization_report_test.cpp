#include "lathe/compress/quantization_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lathe/compress/insert_quantizers.h"
#include "lathe/compress/packed_weights.h"
#include "lathe/core/graph_text.h"

namespace lathe::compress {
namespace {

using testing::ElementsAre;

struct Quantized {
  Graph graph;
  State state;
};

// Weights of 4 bits with a scale a row, inputs of 8 bits in fixed point.
Quantized small() {
  Quantized model;
  model.graph = parse_graph(R"(
    x = input() : f32[B,4]
    w = state() : f32[2,4]
    up = linear(x, w)
    v = state() : f32[2,2]
    down = linear(up, v)
    output y <- down
  )");
  model.state["w"] = Tensor::from<float>({2, 4}, {7, 1, 2, 3.5f, -7, 0, 4, 5});
  model.state["v"] = Tensor::from<float>({2, 2}, {1, 2, 3, 4});
  insert_quantizers(
      model.graph, model.state,
      {{.formats = {{TensorRole::Weights, "int:4,channel"}, {TensorRole::Inputs, "fixed:8,0"}}}});
  return model;
}

TEST(ReportTensors, CountsBitsAndWhatRoundingLost) {
  const Quantized model = small();
  // The quantizer of x sees 1.5 and 2.25, which become 2 and 2.
  std::map<std::string, Observation> seen;
  seen["x/quantized"].rows = {1.5f, 2.25f, 3, 4};
  const std::vector<TensorReport> reports = report_tensors(model.graph, model.state, seen);
  ASSERT_EQ(reports.size(), 4u);
  const TensorReport &x = reports[0], &w = reports[1], &up = reports[2], &v = reports[3];
  EXPECT_EQ(x.tensor, "x");
  EXPECT_EQ(x.role, TensorRole::Inputs);
  EXPECT_EQ(x.format, "fixed:8,0");
  EXPECT_EQ(x.elements, 0);
  EXPECT_EQ(x.bits, 8);
  const double x_ratio = (0.25 + 0.0625) / (2.25 + 5.0625 + 9 + 16);
  EXPECT_NEAR(x.sqnr, -10 * std::log10(x_ratio), 1e-9);
  EXPECT_EQ(w.tensor, "w");
  EXPECT_EQ(w.role, TensorRole::Weights);
  EXPECT_EQ(w.elements, 8);
  EXPECT_EQ(w.bits, 4 + 2 * 32 / 8.0);
  // At scale 1 only 3.5 is rounded, to 4.
  const double w_ratio = 0.25 / (49 + 1 + 4 + 12.25 + 49 + 16 + 25);
  EXPECT_NEAR(w.sqnr, -10 * std::log10(w_ratio), 1e-9);
  EXPECT_TRUE(std::isnan(up.sqnr));
  EXPECT_EQ(up.share_of_error, 0);
  EXPECT_TRUE(std::isinf(v.sqnr));
  EXPECT_EQ(v.share_of_error, 0);
  EXPECT_NEAR(x.share_of_error, x_ratio / (x_ratio + w_ratio), 1e-9);
  EXPECT_NEAR(w.share_of_error, w_ratio / (x_ratio + w_ratio), 1e-9);
}

TEST(ReportTensors, ComparesWithTheWeightsBeforeTheyWereMoved) {
  Quantized model = small();
  const State original = model.state;
  model.state["v"] = Tensor::from<float>({2, 2}, {1, 2, 3, 5});  // as GPTQ would
  const TensorReport v = report_tensors(model.graph, model.state, {}, original)[3];
  EXPECT_NEAR(v.sqnr, -10 * std::log10(1.0 / (1 + 4 + 9 + 16)), 1e-9);
}

TEST(QuantizeOnly, KeepsTheQuantizersThatOneLayerReads) {
  const Quantized model = small();
  EXPECT_THAT(quantized_layers(model.graph), ElementsAre("up", "down"));
  EXPECT_EQ(print(quantize_only(model.graph, "down")), R"(lathe-ir 2
symbols B
v.scale = state() {role="scale"} : f32[2]
x = input() : f32[B,4]
w = state() : f32[2,4]
up = linear(x, w) : f32[B,2]
v = state() : f32[2,2]
up/quantized = quantize(up) {format="fixed:8,0"} : f32[B,2]
v/quantized = quantize(v, v.scale) {format="int:4,channel"} : f32[2,2]
down = linear(up/quantized, v/quantized) : f32[B,2]
output y <- down
)");
}

TEST(QuantizeOnly, CountsARoundedOutputToTheLayerThatGivesIt) {
  Graph graph = parse_graph(R"(
    x = input() : f32[B,4]
    w = state() : f32[4,4]
    up = linear(x, w)
    down = linear(up, w)
    output y <- down
  )");
  State state{{"w", Tensor(DType::F32, {4, 4})}};
  insert_quantizers(graph, state, {{.formats = {{TensorRole::Outputs, "fixed:8,4"}}}});
  EXPECT_EQ(graph.name(*quantize_only(graph, "up").output("y")), "down");
  EXPECT_EQ(graph.name(*quantize_only(graph, "down").output("y")), "down/quantized");
}

TEST(QuantizeOnly, KeepsTheRoundedWeightsOfOneAttention) {
  Graph graph = parse_graph(R"(
    x = input() : f32[B,L,4]
    first = attention(x, x, x) {heads=2}
    second = attention(first, first, first) {heads=2}
    output y <- second
  )");
  State state;
  insert_quantizers(graph, state, {{.formats = {{TensorRole::AttentionWeights, "int:8,dynamic"}}}});
  EXPECT_THAT(quantized_layers(graph), ElementsAre("first", "second"));
  EXPECT_EQ(print(quantize_only(graph, "second")), R"(lathe-ir 2
symbols B, L
x = input() : f32[B,L,4]
first = attention(x, x, x) {heads=2} : f32[B,L,4]
second = attention(first, first, first) {heads=2, weight_format="int:8,dynamic"} : f32[B,L,4]
output y <- second
)");
  const std::vector<TensorReport> reports = report_tensors(graph, state, {});
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[1].tensor, "second");
  EXPECT_EQ(reports[1].role, TensorRole::AttentionWeights);
  EXPECT_EQ(reports[1].format, "int:8,dynamic");
  EXPECT_EQ(reports[1].elements, 0);
  EXPECT_EQ(reports[1].bits, 8 + 32 / 128.0);
  EXPECT_TRUE(std::isnan(reports[1].sqnr));
}

TEST(CountBits, AgreesBeforeAndAfterPacking) {
  Quantized model = small();
  const ModelBits bits = count_bits(model.graph, model.state);
  // 8 and 4 codes of 4 bits, 2 and 2 scales of 32.
  EXPECT_EQ(bits.stored, 12 * 4 + 4 * 32);
  EXPECT_EQ(bits.floats, 12 * 32);
  pack_weights(model.graph, model.state);
  const ModelBits packed = count_bits(model.graph, model.state);
  EXPECT_EQ(packed.stored, bits.stored);
  EXPECT_EQ(packed.floats, bits.floats);
}

TEST(CountBits, CountsAMaskBesideTheCodes) {
  Graph graph = parse_graph(R"(
    x = input() : f32[B,4]
    w = state() : f32[3,4]
    mask = state() {role="mask"} : f32[3,4]
    kept = mul(w, mask)
    y = linear(x, kept)
    output y <- y
  )");
  State state{{"w", Tensor(DType::F32, {3, 4})}, {"mask", Tensor(DType::F32, {3, 4})}};
  insert_quantizers(graph, state, {{.formats = {{TensorRole::Weights, "int:4,channel"}}}});
  const ModelBits bits = count_bits(graph, state);
  EXPECT_EQ(bits.stored, 12 * 4 + 3 * 32 + 12 * 32);
  EXPECT_EQ(bits.floats, 12 * 32);
  pack_weights(graph, state);
  EXPECT_EQ(count_bits(graph, state).stored, bits.stored);
  EXPECT_EQ(count_bits(graph, state).floats, bits.floats);
}

TEST(CountBits, CountsAParameterThatIsAlsoReadAsFloatsAsFloats) {
  Graph graph = parse_graph(R"(
    ids = input() : i32[B]
    w = state() : f32[6,4]
    rows = embedding(ids, w)
    y = linear(rows, w)
    output y <- y
  )");
  State state{{"w", Tensor(DType::F32, {6, 4})}};
  insert_quantizers(graph, state, {{.formats = {{TensorRole::Weights, "fixed:4,2"}}}});
  EXPECT_EQ(count_bits(graph, state).stored, 24 * 32);
}

}  // namespace
}  // namespace lathe::compress
