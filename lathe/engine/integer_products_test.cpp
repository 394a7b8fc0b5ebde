#include "lathe/engine/integer_products.h"

#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"
#include "lathe/core/number_format.h"
#include "lathe/core/pass.h"
#include "lathe/engine/executor.h"
#include "lathe/engine/testing/executor_cases.h"

namespace lathe::engine {
namespace {

// Two layers with an activation and a residual between.
Graph two_layers(std::string_view x_format, std::string_view format, std::int64_t bytes,
                 std::string_view scale, std::string_view local) {
  return parse_graph(fmt::format(R"(
    symbols T
    x = input() : f32[T,64]
    first/codes = state() : u8[96,{2}]
    first/worth = state() : {3}
    first/bias = state() : f32[96]
    second/codes = state() : u8[64,{4}]
    second/worth = state() : {5}
    first/weight = decode(first/codes, {6}) {{format="{1}", columns=64}} : f32[96,64]
    second/weight = decode(second/codes, {7}) {{format="{1}", columns=96}} : f32[64,96]
    x/quantized = quantize(x) {{format="{0}"}} : f32[T,64]
    a = linear(x/quantized, first/weight, first/bias) : f32[T,96]
    g = gelu(a) : f32[T,96]
    g/quantized = quantize(g) {{format="{0}"}} : f32[T,96]
    b = linear(g/quantized, second/weight) : f32[T,64]
    y = add(b, x) : f32[T,64]
    output y <- y
  )",
                                 x_format, format, bytes, fmt::format(fmt::runtime(scale), 96, 2),
                                 bytes / 2 * 3, fmt::format(fmt::runtime(scale), 64, 3),
                                 fmt::format(fmt::runtime(local), "first/worth"),
                                 fmt::format(fmt::runtime(local), "second/worth")));
}
Graph mx_layers() {
  return two_layers("mxint:8", "mxint:8", 64, "u8[{},{}]", "{}");
}
Graph channel_layers() {
  return two_layers("int:8,dynamic", "int:8,channel", 64, "f32[{}]", "none, {}");
}

// Codes of all values, and scales near 1.
State some_codes(const Graph& graph) {
  State state;
  std::uint32_t next = 1;
  for (const NodeId id : graph.nodes_of("state")) {
    const Type& type = graph.types(id)[0];
    Tensor tensor(type.dtype, type.dims({}));
    for (std::int64_t i = 0; i < tensor.num_elements(); ++i) {
      next = next * 1664525u + 1013904223u;
      const bool is_exponent = graph.name(id).ends_with("worth");
      if (type.dtype == DType::U8)
        tensor.mutable_data<std::uint8_t>()[static_cast<std::size_t>(i)] =
            static_cast<std::uint8_t>(is_exponent ? 118 + next % 5 : next >> 24);
      else
        tensor.mutable_data<float>()[static_cast<std::size_t>(i)] =
            0.001f + 0x1p-40f * static_cast<float>(next);
    }
    state[graph.name(id)] = std::move(tensor);
  }
  return state;
}

TEST(IntegerProducts, MultipliesCodesInsteadOfDecodingThem) {
  Graph graph = channel_layers();
  EXPECT_EQ(use_integer_products(graph), 2);
  run_pass("remove-dead-nodes", graph);
  EXPECT_EQ(print(graph, "x/quantized/encoded"),
            "x/quantized/encoded = encode(x) {format=\"int:8,dynamic\"} : i8[T,64], f32[T,1], "
            "i32[T,1]");
  EXPECT_EQ(print(graph, "a/products"),
            "a/products = code_linear(x/quantized/encoded#0, x/quantized/encoded#1, "
            "x/quantized/encoded#2, first/codes, none, first/worth, none, first/bias) "
            "{columns=64, format=\"int:8,channel\", x_format=\"int:8,dynamic\"} : f32[T,96]");
  EXPECT_TRUE(graph.nodes_of("decode").empty());
}

TEST(IntegerProducts, LeavesFormatsWithoutWholeNumbersAlone) {
  Graph wide = two_layers("int:16,dynamic", "int:8,channel", 64, "f32[{}]", "none, {}");
  EXPECT_EQ(use_integer_products(wide), 0);
  Graph floats = two_layers("minifloat:e4m3", "int:8,channel", 64, "f32[{}]", "none, {}");
  EXPECT_EQ(use_integer_products(floats), 0);
}

// The first layer alone: an activation may differ in its last bit between paths.
Graph first_layer(Graph graph) {
  graph.set_output("a", {graph.at("a"), 0});
  graph.remove_output("y");
  run_pass("remove-dead-nodes", graph);
  return graph;
}

TEST(IntegerProducts, HaveTheBitsOfTheReferenceOnEveryPath) {
  for (const Graph& layers : {channel_layers(), mx_layers()}) {
    const Graph graph = first_layer(layers);
    const State state = some_codes(graph);
    const Feed feed = random_feed(graph, {{"T", 37}}, 3);
    const Feed expected =
        make_executor(graph, state, {.device = "reference", .uses_integers = true})->run(feed);
    for (const Isa isa : {Isa::Plain, Isa::Avx2, Isa::Avx512}) {
      if (!is_supported(isa)) continue;
      const Feed result =
          make_executor(graph, state, {.isa = isa, .uses_integers = true})->run(feed);
      const std::span<const float> a = result.at("a").data<float>();
      const std::span<const float> b = expected.at("a").data<float>();
      for (std::size_t i = 0; i < a.size(); ++i) ASSERT_EQ(a[i], b[i]) << "element " << i;
    }
  }
}

// A simulated sum of k = 64 products is rounded at most 2 k times, each time by 2^-24 of what the
// magnitudes sum to: 64 numbers below 1 times weights of at most 127 * 0.005.
TEST(IntegerProducts, AreWhatFloatsSimulateButForTheRoundingOfSums) {
  constexpr double kBound = 2 * 64 * 0x1p-24 * 64 * 127 * 0.005;
  for (const Graph& layers : {channel_layers(), mx_layers()}) {
    const Graph graph = first_layer(layers);
    const State state = some_codes(graph);
    const Feed feed = random_feed(graph, {{"T", 37}}, 3);
    ThreadPool pool(2);
    const Feed result =
        make_executor(graph, state, {.pool = &pool, .uses_integers = true})->run(feed);
    expect_near(result, make_executor(graph, state)->run(feed), kBound);
  }
}

// A precision is about the floats that are left: attention, and what is not quantized.
TEST(IntegerProducts, HaveTheSameBitsInBfloat16) {
  const Graph graph = channel_layers();
  const State state = some_codes(graph);
  const Feed feed = random_feed(graph, {{"T", 37}}, 3);
  const Feed floats = make_executor(graph, state, {.uses_integers = true})->run(feed);
  const ExecutionOptions in_bf16{.precision = Precision::Bf16, .uses_integers = true};
  expect_identical(make_executor(graph, state, in_bf16)->run(feed), floats);
}

TEST(IntegerProducts, TakeInActivationsAndResiduals) {
  const Graph graph = channel_layers();
  const auto executor = make_executor(graph, some_codes(graph), {.uses_integers = true});
  std::vector<std::string> ops;
  for (const PlannedStep& step : executor->report().steps) ops.push_back(step.op);
  EXPECT_EQ(ops, (std::vector<std::string>{"encode", "fused_code_linear", "encode",
                                           "fused_code_linear"}));
}

// Two heads over what is rounded, padded with a mask or packed.
Graph rounded_attention(std::string_view format, std::string_view attributes, bool is_packed) {
  return parse_graph(fmt::format(
      R"(
    symbols B, L, T, S
    q = input() : f32[{2},24]
    k = input() : f32[{2},24]
    v = input() : f32[{2},24]
    {3}
    q/quantized = quantize(q) {{format="{0}"}} : f32[{2},24]
    k/quantized = quantize(k) {{format="{0}"}} : f32[{2},24]
    v/quantized = quantize(v) {{format="{0}"}} : f32[{2},24]
    y = attention(q/quantized, k/quantized, v/quantized, {4}) {{heads=2{1}}} : f32[{2},24]
    output y <- y
  )",
      format, attributes, is_packed ? "T" : "B,L",
      is_packed ? "offsets = input() : i32[S+1]" : "mask = input() : i32[B,L]",
      is_packed ? "none, offsets" : "mask"));
}
Feed attention_feed(const Graph& graph, bool is_packed) {
  Feed feed = is_packed ? random_feed(graph, {{"T", 90}, {"S", 3}}, 3)
                        : random_feed(graph, {{"B", 2}, {"L", 45}}, 3);
  if (is_packed) feed["offsets"] = Tensor::from<std::int32_t>({4}, {0, 1, 36, 90});
  return feed;
}

TEST(IntegerProducts, ScoreRoundedQueriesAndKeysAsWholeNumbers) {
  Graph graph = rounded_attention("int:8,dynamic", "", true);
  EXPECT_EQ(use_integer_products(graph), 1);
  run_pass("remove-dead-nodes", graph);
  EXPECT_EQ(print(graph, "y/products"),
            "y/products = code_attention(q/quantized/encoded#0, k/quantized/encoded#0, "
            "v/quantized/encoded#0, none, offsets, q/quantized/encoded#1, k/quantized/encoded#1, "
            "v/quantized/encoded#1) {heads=2} : f32[T,24]");
  EXPECT_TRUE(graph.nodes_of("quantize").empty());
}

TEST(IntegerProducts, LeaveAttentionThatIsNotOfBytesWithOneScaleARow) {
  for (const char* const format :
       {"mxint:8,block=8", "int:8,asymmetric,dynamic", "int:16,dynamic", "minifloat:e4m3"}) {
    Graph graph = rounded_attention(format, "", true);
    EXPECT_EQ(use_integer_products(graph), 0) << format;
  }
  Graph rounded_weights = rounded_attention("int:8,dynamic", ", weight_format=\"int:8\"", true);
  EXPECT_EQ(use_integer_products(rounded_weights), 0);
}

// The same whole numbers and scores; weights and sums over 45 or 54 keys are floats.
TEST(IntegerProducts, AttendAsTheReferenceAndTheSimulationDo) {
  for (const bool is_packed : {false, true})
    for (const char* const format : {"int:8,dynamic", "int:4,dynamic", "fixed:8,6"})
      for (const char* const attributes : {"", ", causal=true"}) {
        SCOPED_TRACE(fmt::format("{} {}", format, attributes));
        const Graph graph = rounded_attention(format, attributes, is_packed);
        const Feed feed = attention_feed(graph, is_packed);
        const Feed expected =
            make_executor(graph, {}, {.device = "reference", .uses_integers = true})->run(feed);
        expect_near(expected, make_executor(graph, {}, {.device = "reference"})->run(feed), 3e-6);
        for (const Isa isa : {Isa::Plain, Isa::Avx2, Isa::Avx512}) {
          if (!is_supported(isa)) continue;
          const auto executor = make_executor(graph, {}, {.isa = isa, .uses_integers = true});
          EXPECT_EQ(executor->report().steps.back().op, "code_attention");
          const Feed result = executor->run(feed);
          expect_near(result, expected, 3e-6);
          ThreadPool pool(3);
          expect_identical(
              make_executor(graph, {}, {.pool = &pool, .isa = isa, .uses_integers = true})
                  ->run(feed),
              result);
        }
      }
}

// A layer of floats and a packed weight, deeper than a piece of a product.
Graph weight_alone(std::string_view format, std::string_view states, std::string_view decode) {
  return parse_graph(fmt::format(R"(
    symbols T
    x = input() : f32[T,800]
    bias = state() : f32[70]
    {1}
    weight = decode({2}) {{format="{0}", columns=800}} : f32[70,800]
    a = linear(x, weight, bias) : f32[T,70]
    y = relu(a) : f32[T,70]
    output y <- y
  )",
                                 format, states, decode));
}

TEST(IntegerProducts, KeepWeightsOfFloatsPackedWithTheSameBits) {
  for (const Graph& graph :
       {weight_alone("int:8,channel", "codes = state() : u8[70,800]\nworth = state() : f32[70]",
                     "codes, none, worth"),
        weight_alone("int:4,group=32", "codes = state() : u8[70,400]\nworth = state() : f32[70,25]",
                     "codes, none, worth"),
        // An odd number of inputs shares a scale: a byte for each.
        weight_alone("int:4,group=25", "codes = state() : u8[70,400]\nworth = state() : f32[70,32]",
                     "codes, none, worth"),
        weight_alone("mxint:4", "codes = state() : u8[70,400]\nworth = state() : u8[70,25]",
                     "codes, worth"),
        weight_alone("mxint:8", "codes = state() : u8[70,800]\nworth = state() : u8[70,25]",
                     "codes, worth")}) {
    const State state = some_codes(graph);
    for (const std::int64_t rows : {1, 3, 50}) {
      const Feed feed = random_feed(graph, {{"T", rows}}, 3);
      for (const Isa isa : {Isa::Plain, Isa::Avx2, Isa::Avx512}) {
        if (!is_supported(isa)) continue;
        const auto packed = make_executor(graph, state, {.isa = isa, .uses_integers = true});
        EXPECT_EQ(packed->report().steps.back().op, "packed_linear");
        expect_identical(packed->run(feed), make_executor(graph, state, {.isa = isa})->run(feed));
      }
    }
  }
}

TEST(IntegerProducts, KeepTwoNumbersOfFourBitsInAByte) {
  const auto bytes = [](std::string_view format, std::string_view codes) {
    const Graph graph =
        weight_alone(format, fmt::format("codes = state() : {}\nworth = state() : f32[70]", codes),
                     "codes, none, worth");
    const auto executor = make_executor(graph, some_codes(graph), {.uses_integers = true});
    executor->run(random_feed(graph, {{"T", 1}}, 3));
    return executor->report().weight_bytes;
  };
  // Half of the codes, which the state keeps, and of the panels, whose 70 columns are padded to 96
  // at most.
  const std::int64_t saved =
      bytes("int:8,channel", "u8[70,800]") - bytes("int:4,channel", "u8[70,400]");
  EXPECT_GE(saved, (70 + 70) * 400);
  EXPECT_LE(saved, (70 + 96) * 400);
}

TEST(IntegerProducts, EncodeOnlyTheRowsThatAreRead) {
  const Graph graph = with_integer_products(parse_graph(R"(
    symbols B, L
    x = input() : f32[B,L,64]
    codes = state() : u8[96,64]
    worth = state() : f32[96]
    weight = decode(codes, none, worth) {format="int:8,channel", columns=64} : f32[96,64]
    rounded = quantize(x) {format="int:8,dynamic"} : f32[B,L,64]
    a = linear(rounded, weight) : f32[B,L,96]
    first = select(a) {axis=1, index=0} : f32[B,96]
    output y <- first
  )"));
  ASSERT_EQ(graph.nodes_of("encode").size(), 1u);
  EXPECT_EQ(to_text(graph.types(graph.nodes_of("encode")[0])[0]), "i8[B,1,64]");
}

}  // namespace
}  // namespace lathe::engine
