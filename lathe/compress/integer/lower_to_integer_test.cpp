#include "lathe/compress/integer/lower_to_integer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lathe/compress/calibrate.h"
#include "lathe/compress/insert_quantizers.h"
#include "lathe/core/graph_text.h"
#include "lathe/core/number_format.h"
#include "lathe/core/pass.h"
#include "lathe/engine/reference_executor.h"

namespace lathe::compress {
namespace {

// A tiny network in the lab's formats, with weights that a reader can follow.
Graph lab_graph() {
  return parse_graph(R"(
    symbols B
    x = input() : f32[B,2]
    w = state() : f32[2,2]
    b = state() : f32[2]
    x/quantized = quantize(x) {format="fixed:8,3"} : f32[B,2]
    w/quantized = quantize(w) {format="fixed:8,3"} : f32[2,2]
    layer = linear(x/quantized, w/quantized, b) : f32[B,2]
    act = relu(layer) : f32[B,2]
    act/quantized = quantize(act) {format="fixed:8,3"} : f32[B,2]
    output logits <- act/quantized
  )");
}
State lab_state() {
  return {{"w", Tensor::from<float>({2, 2}, {1.0f, -0.5f, 0.25f, 2.0f})},
          {"b", Tensor::from<float>({2}, {0.125f, -1.0f})}};
}

TEST(LowerToInteger, MultipliesWholeNumbersAloneInTheDialectOfProducts) {
  Graph graph = lab_graph();
  State state = lab_state();
  PassContext context{.options = {{"dialect", std::string("products")}}, .state = &state};
  EXPECT_EQ(run_pass("lower-to-integer", graph, context).changed, 1);
  EXPECT_EQ(print(graph, "layer/products"),
            "layer/products = code_linear(x/quantized/encoded#0, x/quantized/encoded#1, "
            "x/quantized/encoded#2, w.codes, none, none, none, b) {columns=2, "
            "format=\"fixed:8,3\", x_format=\"fixed:8,3\"} : f32[B,2]");
  EXPECT_EQ(graph.nodes_of("quantize").size(), 1u);  // what relu gives stays float
  const Feed feed = {{"x", Tensor::from<float>({1, 2}, {1.0f, 0.3f})}};
  // 0.3 is 2/8: 1 * 1 - 0.5 * 0.25 + 0.125 = 1, and 0.25 + 2 * 0.25 - 1 is below 0.
  const Tensor logits = engine::run_reference(graph, state, feed).at("logits");
  EXPECT_EQ(logits.at(0), 1.0);
  EXPECT_EQ(logits.at(1), 0.0);
}

TEST(LowerToInteger, MakesALinearAndAReluOneOfIntegers) {
  Graph graph = lab_graph();
  State state = lab_state();
  lower_to_integer(graph, state);
  EXPECT_EQ(print(graph), R"(lathe-ir 2
symbols B
x = input() : f32[B,2]
x/quantized = to_integer(x) {scale=[0.125], width=8} : i8[B,2]
w = state() {role="codes"} : i8[2,2]
b = state() {role="codes"} : i8[2]
layer = integer_linear(x/quantized, w, b) {scale=[0.015625], width=13} : i16[B,2]
act/quantized/requant = requant(layer) {multiplier=1, scale=[0.125], shift=3, width=8} : i8[B,2]
act/quantized = relu(act/quantized/requant) : i8[B,2]
act/quantized/float = from_integer(act/quantized) {scale=[0.125]} : f32[B,2]
output logits <- act/quantized/float
)");
}

TEST(LowerToInteger, GivesRreluTheSlopesOfARegister) {
  Graph graph = parse_graph(R"(
    symbols B
    x = input() : f32[B,2]
    x/quantized = quantize(x) {format="fixed:8,3"} : f32[B,2]
    act = rrelu(x/quantized) {lanes=2} : f32[B,2]
    output logits <- act
  )");
  State state;
  Graph other = parse_graph(R"(
    x = input() : f32[2]
    x/quantized = quantize(x) {format="fixed:8,3"} : f32[2]
    act = rrelu(x/quantized) {upper=0.25} : f32[2]
    output logits <- act
  )");
  lower_to_integer(graph, state);
  EXPECT_EQ(print(graph, "act"),
            "act = integer_rrelu(x/quantized) {first=1, lanes=2, taps=184} : i8[B,2]");
  EXPECT_THROW(lower_to_integer(other, state), UserError);
}

TEST(LowerToInteger, ComputesWhatTheQuantizedGraphComputes) {
  Graph graph = lab_graph();
  State state = lab_state();
  std::vector<float> values;
  for (int i = -300; i < 300; ++i) values.push_back(0.07f * static_cast<float>(i));
  const Feed feed{{"x", Tensor::from<float>({300, 2}, std::span<const float>(values))}};
  const Tensor expected = engine::run_reference(graph, state, feed).at("logits");
  lower_to_integer(graph, state);
  EXPECT_TRUE(identical(engine::run_reference(graph, state, feed).at("logits"), expected));
}

std::string refusal(const std::string& text, State state) {
  Graph graph = parse_graph(text);
  try {
    lower_to_integer(graph, state);
  } catch (const UserError& error) {
    return error.message();
  }
  return "none";
}

TEST(LowerToInteger, NamesEveryPlaceThatStaysFloatInOneLine) {
  EXPECT_EQ(refusal(R"(
    symbols B
    x = input() : f32[B,2]
    w = state() : f32[2,2]
    a = linear(x, w) : f32[B,2]
    y = input() : f32[B,2]
    y/quantized = quantize(y) {format="fixed:8,3"} : f32[B,2]
    b = linear(y/quantized, w) : f32[B,2]
    c = sigmoid(a) : f32[B,2]
    output a <- c
    output b <- b
  )",
                    lab_state()),
            "no integers for \"a\" (linear): x is not quantized; \"b\" (linear): w is not "
            "quantized; \"c\" (sigmoid): a is not quantized");
}

// Formats and ops that have no integers are named too where what they read has none.
TEST(LowerToInteger, NamesWhatIsBehindAPlaceThatStaysFloat) {
  EXPECT_EQ(
      refusal(R"(
    symbols B
    x = input() : f32[B,2]
    w = state() : f32[2,2]
    g = state() : f32[2]
    a = linear(x, w) : f32[B,2]
    a/quantized = quantize(a) {format="mxint:8"} : f32[B,2]
    b = batch_norm(a/quantized, g, g, g, g) : f32[B,2]
    output b <- b
  )",
              lab_state()),
      "no integers for \"a\" (linear): x is not quantized; \"a/quantized\" (quantize): mxint:8 "
      "makes its scales while it runs; \"b\" (batch_norm): there is no integer form of it");
}

// A layer that reads floats needs a quantizer of its own; one whose input is quantized is looked at
// as if nothing stood in front of it, and a ReLU is as good as what it reads.
TEST(LowerToInteger, NamesLayersThatReadWhatStaysFloat) {
  EXPECT_EQ(refusal(R"(
    symbols B
    x = input() : f32[B,2]
    w = state() : f32[2,2]
    a = linear(x, w) : f32[B,2]
    a/relu = relu(a) : f32[B,2]
    b = linear(a/relu, w) : f32[B,2]
    b/quantized = quantize(b) {format="fixed:8,3"} : f32[B,2]
    w/quantized = quantize(w) {format="fixed:8,3"} : f32[2,2]
    c = linear(b/quantized, w/quantized) : f32[B,2]
    c/quantized = quantize(c) {format="fixed:8,3"} : f32[B,2]
    d = linear(c/quantized, w) : f32[B,2]
    output d <- d
  )",
                    lab_state()),
            "no integers for \"a\" (linear): x is not quantized; \"b\" (linear): a/relu is not "
            "quantized; \"d\" (linear): w is not quantized");
}

TEST(LowerToInteger, RefusesASumOfMoreThan64Bits) {
  // The lowest input times four of the lowest weight is 2^64.
  const State state{{"w", Tensor::from<float>({1, 4}, {-0x1p31f, -0x1p31f, -0x1p31f, -0x1p31f})}};
  EXPECT_EQ(refusal(R"(
    symbols B
    x = input() : f32[B,4]
    w = state() : f32[1,4]
    x/quantized = quantize(x) {format="fixed:32,0"} : f32[B,4]
    w/quantized = quantize(w) {format="fixed:32,0"} : f32[1,4]
    a = linear(x/quantized, w/quantized) : f32[B,1]
    output a <- a
  )",
                    state),
            "no integers for \"a\" (linear): a sum needs 66 bits, more than 64");
}

// Results may differ from the quantized graph's by one code, and only beside a tie.
TEST(LowerToInteger, TakesWeightsOfEveryFamily) {
  for (const std::string format :
       {"fixed:8,5", "fixed:6,auto", "fixed:6,auto,channel", "int:8", "int:4,channel", "binary",
        "binary:scaled", "ternary", "ternary:tensor", "log:4,bias=5", "minifloat:e4m3",
        "mxint:8,block=2", "int:8,dynamic", "mxfp:e2m1,block=2"}) {
    SCOPED_TRACE(format);
    const std::shared_ptr<const NumberFormat> parsed = parse_format(format);
    const bool has_scale = parsed->facts().scale_source == ScaleSource::Given;
    const bool has_row_scale = has_scale && parsed->facts().granularity == Granularity::Row;
    Graph graph =
        parse_graph(fmt::format(R"(
      symbols B
      x = input() : f32[B,4]
      w = state() : f32[2,4]
      b = state() : f32[2]
      s = state() {{role="scale"}} : f32[{}]
      x/quantized = quantize(x) {{format="fixed:8,4"}} : f32[B,4]
      w/quantized = quantize(w{}) {{format="{}"}} : f32[2,4]
      layer = linear(x/quantized, w/quantized, b) : f32[B,2]
      y = quantize(layer) {{format="fixed:8,2"}} : f32[B,2]
      output layer <- layer
      output y <- y
    )",
                                has_row_scale ? "2" : "", has_scale ? ", s" : "", format));
    State state{
        {"w", Tensor::from<float>({2, 4}, {0.9f, -0.3f, 0.02f, 1.7f, -2.2f, 0.4f, 0, 0.6f})},
        {"b", Tensor::from<float>({2}, {0.3f, -0.7f})},
        {"s", has_row_scale ? Tensor::from<float>({2}, {0.013f, 0.02f})
                            : Tensor::from<float>({}, {0.019f})}};
    std::vector<float> values;
    for (int i = 0; i < 400; ++i) values.push_back(0.09f * static_cast<float>(i * 37 % 173 - 86));
    const Feed feed{{"x", Tensor::from<float>({100, 4}, std::span<const float>(values))}};
    const Feed expected = engine::run_reference(graph, state, feed);
    lower_to_integer(graph, state);
    const Tensor got = engine::run_reference(graph, state, feed).at("y");
    const std::vector<double> steps = graph.attribute(graph.at("layer")).reals("scale");
    for (std::int64_t i = 0; i < got.num_elements(); ++i) {
      if (got.at(i) == expected.at("y").at(i)) continue;
      EXPECT_NEAR(got.at(i), expected.at("y").at(i), 0.25) << i;
      // Half a step of the sum for the bias, half of the last of 17 bits for the multiplier, and
      // the float sum's own rounding: as near to a tie as that.
      const double codes = expected.at("layer").at(i) / 0.25;
      const double bound = 0.5 * steps[static_cast<std::size_t>(i) % steps.size()] / 0.25 +
                           std::fabs(codes) * (0x1p-17 + 0x1p-21);
      EXPECT_LE(std::fabs(codes - std::floor(codes) - 0.5), bound) << i;
    }
  }
}

// A factor below 0 turns the signs of its weights, one of 0 leaves the bias alone.
TEST(LowerToInteger, FoldsBatchNormIntoTheSumsInFrontOfIt) {
  Graph graph = parse_graph(R"(
    symbols B
    x = input() : f32[B,1,3,3]
    w = state() : f32[3,1,2,2]
    gamma = state() : f32[3]
    beta = state() : f32[3]
    mean = state() {role="buffer"} : f32[3]
    variance = state() {role="buffer"} : f32[3]
    x/quantized = quantize(x) {format="fixed:8,4"} : f32[B,1,3,3]
    w/quantized = quantize(w) {format="fixed:8,5"} : f32[3,1,2,2]
    conv = conv2d(x/quantized, w/quantized) : f32[B,3,2,2]
    norm = batch_norm(conv, gamma, beta, mean, variance) {eps=0.0} : f32[B,3,2,2]
    act = relu(norm) : f32[B,3,2,2]
    act/quantized = quantize(act) {format="fixed:8,3"} : f32[B,3,2,2]
    pool = max_pool2d(act/quantized) {kernel=[2,2]} : f32[B,3,1,1]
    mean_pool = avg_pool2d(act/quantized) {kernel=[2,2]} : f32[B,3,1,1]
    mean_pool/quantized = quantize(mean_pool) {format="fixed:8,4"} : f32[B,3,1,1]
    output largest <- pool
    output mean <- mean_pool/quantized
  )");
  State state{{"w", Tensor::from<float>({3, 1, 2, 2},
                                        {0.5f, -1, 0.25f, 2, 1, 1, -0.5f, 0.75f, 2, 2, 2, 2})},
              {"gamma", Tensor::from<float>({3}, {2.0f, -0.5f, 0.0f})},
              {"beta", Tensor::from<float>({3}, {0.25f, 1.0f, 0.5f})},
              {"mean", Tensor::from<float>({3}, {0.5f, -0.25f, 3.0f})},
              {"variance", Tensor::from<float>({3}, {4.0f, 0.25f, 1.0f})}};
  std::vector<float> values;
  for (int i = 0; i < 90; ++i) values.push_back(0.07f * static_cast<float>(i * 29 % 91 - 45));
  const Feed feed{{"x", Tensor::from<float>({10, 1, 3, 3}, std::span<const float>(values))}};
  const Feed expected = engine::run_reference(graph, state, feed);
  lower_to_integer(graph, state);
  // Every factor, bias and scale is a power of two times what the sums' step divides: all exact.
  const Feed got = engine::run_reference(graph, state, feed);
  EXPECT_TRUE(identical(got.at("largest"), expected.at("largest")));
  EXPECT_TRUE(identical(got.at("mean"), expected.at("mean")));
  EXPECT_FALSE(graph.find("norm"));
}

}  // namespace
}  // namespace lathe::compress
