#include "lathe/compress/insert_quantizers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/compress/packed_weights.h"
#include "lathe/compress/quantizers.h"
#include "lathe/core/graph_text.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/io/model.h"
#include "lathe/io/testing/tiny_bert.h"
#include "lathe/models/initialize.h"

namespace lathe::compress {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Key;

using By = QuantizationRule::By;

const char* const kTwoLinears = R"(lathe-ir 2
symbols B
x = input() : f32[B,4]
up.weight = state() : f32[3,4]
up.bias = state() : f32[3]
up = linear(x, up.weight, up.bias) : f32[B,3]
act = relu(up) : f32[B,3]
down.weight = state() : f32[2,3]
down = linear(act, down.weight, none) : f32[B,2]
output y <- down
)";

struct Quantized {
  Graph graph;
  State state;
  Insertion insertion;
};

Quantized quantize(const char* text, const std::vector<QuantizationRule>& rules) {
  Quantized result;
  result.graph = parse_graph(text);
  result.state = models::initialize(result.graph, 1);
  result.insertion = insert_quantizers(result.graph, result.state, rules);
  return result;
}

TEST(InsertQuantizers, RoundsWhatLinearsReadAndMakesTheirScales) {
  const Quantized made =
      quantize(kTwoLinears, {{.formats = {{TensorRole::Weights, "int:4,channel"},
                                          {TensorRole::Bias, "fixed:8,4"},
                                          {TensorRole::Inputs, "int:8,asymmetric"}}}});
  EXPECT_EQ(print(made.graph), R"(lathe-ir 2
symbols B
down.weight.scale = state() {role="scale"} : f32[2]
act.zero = state() {role="zero"} : f32[]
act.scale = state() {role="scale"} : f32[]
up.weight.scale = state() {role="scale"} : f32[3]
x.zero = state() {role="zero"} : f32[]
x.scale = state() {role="scale"} : f32[]
x = input() : f32[B,4]
up.weight = state() : f32[3,4]
up.bias = state() : f32[3]
x/quantized = quantize(x, x.scale, x.zero) {format="int:8,asymmetric"} : f32[B,4]
up.weight/quantized = quantize(up.weight, up.weight.scale) {format="int:4,channel"} : f32[3,4]
up.bias/quantized = quantize(up.bias) {format="fixed:8,4"} : f32[3]
up = linear(x/quantized, up.weight/quantized, up.bias/quantized) : f32[B,3]
act = relu(up) : f32[B,3]
down.weight = state() : f32[2,3]
act/quantized = quantize(act, act.scale, act.zero) {format="int:8,asymmetric"} : f32[B,3]
down.weight/quantized = quantize(down.weight, down.weight.scale) {format="int:4,channel"} : f32[2,3]
down = linear(act/quantized, down.weight/quantized, none) : f32[B,2]
output y <- down
)");
  EXPECT_EQ(made.insertion.quantizers, 5);
  EXPECT_THAT(made.insertion.unused, IsEmpty());
  EXPECT_TRUE(identical(made.state.at("up.weight.scale"), Tensor::from<float>({3}, {1, 1, 1})));
  EXPECT_TRUE(identical(made.state.at("x.zero"), Tensor::from<float>({}, {0})));
}

TEST(InsertQuantizers, FollowsTheFirstRuleThatMatches) {
  const Quantized made = quantize(
      kTwoLinears,
      {{.by = By::Name, .match = "up", .formats = {{TensorRole::Weights, "fixed:4,2"}}},
       {.by = By::Type, .match = "linear", .formats = {{TensorRole::Weights, "float"}}},
       {.by = By::Regex, .match = "do", .formats = {{TensorRole::Weights, "nf4"}}, .place = "r:9"},
       {.formats = {{TensorRole::Weights, "mxint:8"}}}});
  std::vector<std::string> formats;
  for (const Quantizer& quantizer : find_quantizers(made.graph))
    formats.push_back(quantizer.state + " " + quantizer.format);
  EXPECT_THAT(formats, ElementsAre("up.weight fixed:4,2"));
  EXPECT_THAT(made.insertion.unused, ElementsAre("r:9: do"));
}

TEST(InsertQuantizers, RoundsResultsForEveryReaderAndForTheOutside) {
  const Quantized made = quantize(kTwoLinears, {{.formats = {{TensorRole::Outputs, "fixed:8,4"}}}});
  EXPECT_EQ(print(made.graph), R"(lathe-ir 2
symbols B
x = input() : f32[B,4]
up.weight = state() : f32[3,4]
up.bias = state() : f32[3]
up = linear(x, up.weight, up.bias) : f32[B,3]
up/quantized = quantize(up) {format="fixed:8,4"} : f32[B,3]
act = relu(up/quantized) : f32[B,3]
down.weight = state() : f32[2,3]
down = linear(act, down.weight, none) : f32[B,2]
down/quantized = quantize(down) {format="fixed:8,4"} : f32[B,2]
output y <- down/quantized
)");
}

TEST(InsertQuantizers, RoundsOtherOpsOnlyWhenTheirTypeOrWholeNameIsGiven) {
  const auto rounded = [](By by, const char* match) {
    const Quantized made = quantize(
        kTwoLinears, {{.by = by, .match = match, .formats = {{TensorRole::Inputs, "mxint:8"}}}});
    std::vector<std::string> readers;
    for (const Quantizer& quantizer : find_quantizers(made.graph))
      readers.insert(readers.end(), quantizer.layers.begin(), quantizer.layers.end());
    return readers;
  };
  EXPECT_THAT(rounded(By::Type, "relu"), ElementsAre("act"));
  EXPECT_THAT(rounded(By::Name, "act"), ElementsAre("act"));
  EXPECT_THAT(rounded(By::Regex, "."), ElementsAre("up", "down"));
  EXPECT_THAT(rounded(By::Any, ""), ElementsAre("up", "down"));
}

TEST(InsertQuantizers, RoundsAResultAgainForAReaderThatWantsAnotherFormat) {
  const char* const chain = R"(
    x = input() : f32[B,4]
    w = state() : f32[4,4]
    one = linear(x, w)
    two = linear(one, w)
    output y <- two
  )";
  const Quantized other = quantize(
      chain,
      {{.formats = {{TensorRole::Inputs, "fixed:8,6"}, {TensorRole::Outputs, "fixed:8,4"}}}});
  EXPECT_EQ(print(other.graph, "two"), "two = linear(one/quantized/quantized, w) : f32[B,4]");
  const Quantized same = quantize(
      chain,
      {{.formats = {{TensorRole::Inputs, "fixed:8,4"}, {TensorRole::Outputs, "fixed:8,4"}}}});
  EXPECT_EQ(print(same.graph, "two"), "two = linear(one/quantized, w) : f32[B,4]");
}

TEST(InsertQuantizers, LeavesTheOtherResultsOfANodeAlone) {
  const Quantized made = quantize(
      R"(
    x = input() : f32[B,8]
    parts = split(x) {axis=-1, sizes=[4,4]}
    y = add(parts#0, parts#1)
    output y <- y
  )",
      {{.by = By::Name, .match = "parts", .formats = {{TensorRole::Outputs, "fixed:8,4"}}}});
  EXPECT_EQ(print(made.graph, "y"), "y = add(\"parts#0/quantized\", parts#1) : f32[B,4]");
}

const char* const kLookup = R"(
  ids = input() : i32[B]
  table = state() : f32[10,4]
  rows = embedding(ids, table)
  y = relu(rows)
  output y <- y
)";

TEST(InsertQuantizers, RoundsLookedUpRowsUnlessTheirScalesAreTheTables) {
  const auto graph = [](const char* format) {
    return quantize(kLookup, {{.formats = {{TensorRole::Embeddings, format}}}}).graph;
  };
  for (const char* const format : {"fixed:8,4", "mxint:8", "int:8"}) {
    SCOPED_TRACE(format);
    EXPECT_EQ(print(graph(format), "y"), "y = relu(rows/quantized) : f32[B,4]");
    const std::vector<Quantizer> quantizers = find_quantizers(graph(format));
    ASSERT_EQ(quantizers.size(), 1u);
    EXPECT_TRUE(quantizers[0].is_parameter);
    EXPECT_EQ(quantizers[0].state, "table");
    EXPECT_EQ(quantizers[0].role, TensorRole::Embeddings);
  }
  for (const char* const format : {"int:8,channel", "int:8,group=2", "ternary:tensor"}) {
    SCOPED_TRACE(format);
    EXPECT_EQ(print(graph(format), "rows"), "rows = embedding(ids, table/quantized) : f32[B,4]");
    EXPECT_EQ(find_quantizers(graph(format)).at(0).role, TensorRole::Embeddings);
  }
}

// A table that words are read with and predicted with is rounded once, so that codes stand for it.
TEST(InsertQuantizers, RoundsATableOnceForALayerThatMultipliesWithIt) {
  const char* const tied = R"(lathe-ir 2
symbols B
ids = input() : i32[B]
table = state() : f32[6,4]
rows = embedding(ids, table) : f32[B,4]
y = linear(rows, table, none) : f32[B,6]
output y <- y
)";
  for (const char* const format : {"fixed:8,4", "mxint:8", "int:8", "nf4", "int:8,channel"}) {
    SCOPED_TRACE(format);
    const auto graph = [&](const char* table) {
      return quantize(
                 tied,
                 {{.formats = {{TensorRole::Embeddings, table}, {TensorRole::Weights, format}}}})
          .graph;
    };
    const Graph same = graph(format);
    EXPECT_EQ(print(same, "rows"), "rows = embedding(ids, table/quantized) : f32[B,4]");
    EXPECT_EQ(print(same, "y"), "y = linear(rows, table/quantized, none) : f32[B,6]");
    EXPECT_THAT(packable_parameters(same), ElementsAre("table"));
    EXPECT_THAT(packable_parameters(graph("fixed:6,3")), IsEmpty());
  }
}

TEST(InsertQuantizers, RefusesScalesForRowsThatAreTokens) {
  const auto refusal = [](const char* format) {
    return error_text([&] {
      quantize(kTwoLinears, {{.formats = {{TensorRole::Inputs, format}}, .place = "r.toml:3"}});
    });
  };
  EXPECT_EQ(refusal("int:8,channel"),
            "r.toml:3: x: int:8,channel has a scale for each row, which are tokens here: use a "
            "format with one scale, a dynamic one, or one with blocks of its own");
  EXPECT_EQ(refusal("bfp:8,block=4x16"),
            "r.toml:3: x: bfp:8,block=4x16 has a scale for several rows, which are tokens here: "
            "use one whose rows are alone");
  EXPECT_EQ(refusal("int:8,dynamic"), "no error");
}

TEST(InsertQuantizers, RefusesATensorThatIsQuantizedAlready) {
  const auto again = [](const char* text, TensorRole role, const char* format) {
    return error_text([&] {
      Quantized made = quantize(text, {{.formats = {{role, format}}}});
      insert_quantizers(made.graph, made.state, {{.formats = {{role, format}}}});
    });
  };
  EXPECT_EQ(again(kTwoLinears, TensorRole::Weights, "int:8"),
            ": up: operand 1 is quantized already");
  EXPECT_EQ(again(kTwoLinears, TensorRole::Inputs, "mxint:8"),
            ": up: operand 0 is quantized already");
  EXPECT_EQ(again(kTwoLinears, TensorRole::Outputs, "fixed:8,4"),
            ": up: its result is quantized already");
  EXPECT_EQ(again(kLookup, TensorRole::Embeddings, "fixed:8,4"),
            ": rows: its result is quantized already");
  EXPECT_EQ(again(kLookup, TensorRole::Embeddings, "int:8,channel"),
            ": rows: its table is quantized already");
}

TEST(InsertQuantizers, SharesTheInputOfQueryKeyAndValue) {
  const io::ScratchDirectory scratch;
  io::Model model = io::load_model(io::write_tiny_bert(scratch, "m"), {.task = "classify"});
  const Insertion insertion =
      insert_quantizers(model.graph, model.state, {{.formats = {{TensorRole::Inputs, "int:8"}}}});
  // Linears: query, key, value; the attention's output; two of the feed-forward part; pooler;
  // classifier. The first three share theirs.
  EXPECT_EQ(insertion.quantizers, 6);
  const std::vector<Quantizer> quantizers = find_quantizers(model.graph);
  ASSERT_EQ(quantizers.size(), 6u);
  const std::string self = "bert.encoder.layer.0.attention.self.";
  EXPECT_THAT(quantizers[0].layers, ElementsAre(self + "query", self + "key", self + "value"));
  EXPECT_EQ(quantizers[0].role, TensorRole::Inputs);
  EXPECT_FALSE(quantizers[0].is_parameter);
}

TEST(InsertQuantizers, RoundsWhatAttentionMultiplies) {
  const io::ScratchDirectory scratch;
  io::Model model = io::load_model(io::write_tiny_bert(scratch, "m"), {.task = "classify"});
  insert_quantizers(
      model.graph, model.state,
      {{.formats = {{TensorRole::Attention, "fixed:8,4"}, {TensorRole::Outputs, "fixed:8,5"}}}});
  int of_attention = 0;
  for (const Quantizer& quantizer : find_quantizers(model.graph))
    of_attention += quantizer.role == TensorRole::Attention && quantizer.format == "fixed:8,4";
  EXPECT_EQ(of_attention, 3);
}

const char* const kAttention = R"(lathe-ir 2
symbols B, L
x = input() : f32[B,L,4]
w = state() : f32[4,4]
v = linear(x, w) : f32[B,L,4]
mix = attention(x, x, v) {heads=2} : f32[B,L,4]
output y <- mix
)";

TEST(InsertQuantizers, WritesTheFormatOfAttentionsWeightsOnTheNode) {
  const std::vector<QuantizationRule> rules = {
      {.formats = {{TensorRole::AttentionWeights, "int:8,asymmetric"}}, .place = "command line"}};
  Quantized made = quantize(kAttention, rules);
  EXPECT_EQ(made.insertion.quantizers, 1);
  EXPECT_THAT(made.state, ElementsAre(Key("w")));  // no scale to measure or learn
  const std::string text = print(made.graph);
  EXPECT_NE(text.find("mix = attention(x, x, v) {heads=2, weight_format=\"int:8,asymmetric\"} : "
                      "f32[B,L,4]"),
            std::string::npos)
      << text;
  EXPECT_EQ(print(parse_graph(text)), text);
  EXPECT_TRUE(is_quantized(made.graph));
  EXPECT_EQ(error_text([&] { insert_quantizers(made.graph, made.state, rules); }),
            "command line: mix: its weights are quantized already");
  unround_attention(made.graph);
  EXPECT_EQ(print(made.graph), kAttention);
  EXPECT_FALSE(is_quantized(made.graph));
}

TEST(InsertQuantizers, RoundsAConvolutionByItsOutputChannels) {
  const Quantized made = quantize(R"(lathe-ir 2
symbols B
x = input() : f32[B,3,5,5]
w = state() : f32[4,3,3,3]
b = state() : f32[4]
y = conv2d(x, w, b) : f32[B,4,3,3]
output y <- y
)",
                                  {{.formats = {{TensorRole::Weights, "int:8,channel"},
                                                {TensorRole::Bias, "fixed:8,4"},
                                                {TensorRole::Inputs, "int:8"}}}});
  EXPECT_EQ(print(made.graph), R"(lathe-ir 2
symbols B
w.scale = state() {role="scale"} : f32[4]
x.scale = state() {role="scale"} : f32[]
x = input() : f32[B,3,5,5]
w = state() : f32[4,3,3,3]
b = state() : f32[4]
x/quantized = quantize(x, x.scale) {format="int:8"} : f32[B,3,5,5]
w/quantized = quantize(w, w.scale) {axis=0, format="int:8,channel"} : f32[4,3,3,3]
b/quantized = quantize(b) {format="fixed:8,4"} : f32[4]
y = conv2d(x/quantized, w/quantized, b/quantized) : f32[B,4,3,3]
output y <- y
)");
}

TEST(InsertQuantizers, RoundsAProductWithAParameterByItsColumns) {
  const char* const text = R"(
    x = input() : f32[B,6]
    w = state() : f32[6,4]
    h = matmul(x, w)
    v = state() : f32[5,4]
    y = matmul(h, v) {transpose_b=true}
    scores = matmul(y, y) {transpose_a=true}
    output y <- scores
  )";
  const Quantized made = quantize(
      text,
      {{.formats = {{TensorRole::Weights, "int:4,channel"}, {TensorRole::Inputs, "fixed:8,4"}}}});
  EXPECT_EQ(print(made.graph, "w/quantized"),
            "w/quantized = quantize(w, w.scale) {axis=1, format=\"int:4,channel\"} : f32[6,4]");
  EXPECT_EQ(made.state.at("w.scale").dims(), std::vector<std::int64_t>{4});
  EXPECT_EQ(print(made.graph, "v/quantized"),
            "v/quantized = quantize(v, v.scale) {format=\"int:4,channel\"} : f32[5,4]");
  // A product of two activations is no layer, unless a rule says its name or type.
  EXPECT_EQ(print(made.graph, "scores"), "scores = matmul(y, y) {transpose_a=true} : f32[5,5]");
  const Quantized named = quantize(
      text, {{.by = By::Name,
              .match = "scores",
              .formats = {{TensorRole::Weights, "fixed:8,2"}, {TensorRole::Inputs, "fixed:8,4"}}}});
  EXPECT_EQ(print(named.graph, "scores"),
            "scores = matmul(y/quantized, y/quantized_2) {transpose_a=true} : f32[5,5]");
}

const char* const kMasked = R"(lathe-ir 2
symbols B
x = input() : f32[B,4]
w = state() : f32[3,4]
w.mask = state() {role="mask"} : f32[3,4]
w/masked = mul(w, w.mask) : f32[3,4]
y = linear(x, w/masked) : f32[B,3]
output y <- y
)";

// A table of distances is projected when weights change: no data passes through, and the weight of
// that layer is one all the same. It is rounded once where a layer of data has it too.
TEST(InsertQuantizers, RoundsTheWeightsOfLayersThatReadParametersAlone) {
  const Quantized made = quantize(R"(lathe-ir 2
symbols B, L
x = input() : f32[B,L,4]
k.weight = state() : f32[4,4]
k = linear(x, k.weight, none) : f32[B,L,4]
distances = state() : f32[6,4]
near = linear(distances, k.weight, none) : f32[6,4]
far.weight = state() : f32[4,4]
far = linear(distances, far.weight, none) : f32[6,4]
y = relative_attention(x, k, x, none, none, near, far) {heads=1} : f32[B,L,4]
output y <- y
)",
                                  {{.formats = {{TensorRole::Weights, "mxint:8"},
                                                {TensorRole::Inputs, "mxint:8"},
                                                {TensorRole::Outputs, "mxint:8"}}}});
  EXPECT_EQ(print(made.graph, "near"),
            "near = linear(distances, k.weight/quantized, none) : f32[6,4]");
  EXPECT_EQ(print(made.graph, "far"),
            "far = linear(distances, far.weight/quantized, none) : f32[6,4]");
  EXPECT_EQ(print(made.graph, "k"),
            "k = linear(x/quantized, k.weight/quantized, none) : f32[B,L,4]");
  EXPECT_EQ(made.graph.nodes_of("quantize").size(), 4u);
}

TEST(InsertQuantizers, RoundsAMaskedWeightAfterItsMask) {
  const Quantized made = quantize(kMasked, {{.formats = {{TensorRole::Weights, "int:4,channel"}}}});
  EXPECT_EQ(print(made.graph, "w/quantized"),
            "w/quantized = quantize(w/masked, w.scale) {format=\"int:4,channel\"} : f32[3,4]");
  const std::vector<Quantizer> quantizers = find_quantizers(made.graph);
  ASSERT_EQ(quantizers.size(), 1u);
  EXPECT_TRUE(quantizers[0].is_parameter);
  EXPECT_THAT(quantizers[0].sources, ElementsAre("w"));
  EXPECT_EQ(quantizers[0].role, TensorRole::Weights);
  EXPECT_THAT(quantizers[0].layers, ElementsAre("y"));
}

TEST(InsertQuantizers, RoundsRowsOfAComputedTable) {
  const Quantized made = quantize(R"(
    ids = input() : i32[B]
    table = state() : f32[10,4]
    mask = state() {role="mask"} : f32[10,4]
    kept = mul(table, mask)
    rows = embedding(ids, kept)
    output y <- rows
  )",
                                  {{.formats = {{TensorRole::Embeddings, "int:8"}}}});
  const std::vector<Quantizer> quantizers = find_quantizers(made.graph);
  ASSERT_EQ(quantizers.size(), 1u);
  EXPECT_EQ(quantizers[0].role, TensorRole::Embeddings);
  EXPECT_THAT(quantizers[0].sources, ElementsAre("table"));
  EXPECT_EQ(made.graph.name(quantizers[0].parameter), "kept");
}

TEST(InsertQuantizers, RoundsAllThatANamedOpIsFedWith) {
  const Quantized made =
      quantize(R"(
    x = input() : f32[B,4]
    y = input() : f32[B,4]
    sum = add(x, y)
    output y <- sum
  )",
               {{.by = By::Type, .match = "add", .formats = {{TensorRole::Inputs, "fixed:8,4"}}}});
  EXPECT_EQ(print(made.graph, "sum"), "sum = add(x/quantized, y/quantized) : f32[B,4]");
}

TEST(InsertQuantizers, LeavesNoStateBehindForAnUnreadResult) {
  const Quantized made = quantize(
      R"(
    x = input() : f32[B,4]
    w = state() : f32[4,4]
    unread = linear(x, w)
    y = relu(x)
    output y <- y
  )",
      {{.formats = {{TensorRole::Outputs, "int:8"}}}});
  EXPECT_FALSE(made.state.contains("unread.scale"));
}

TEST(InsertQuantizers, RoundsBeforeAMaskWhereTheFormatHasNoZero) {
  Graph graph = parse_graph(R"(
    ids = input() : i32[B]
    t = state() : f32[5,3]
    n = state() {role="mask"} : f32[5,3]
    u = mul(t, n)
    e = embedding(ids, u)
    w = state() : f32[2,3]
    m = state() {role="mask"} : f32[2,3]
    p = mul(w, m)
    y = linear(e, p)
    output y <- y
  )");
  State state{{"t", Tensor(DType::F32, {5, 3})},
              {"n", Tensor(DType::F32, {5, 3})},
              {"w", Tensor(DType::F32, {2, 3})},
              {"m", Tensor(DType::F32, {2, 3})}};
  insert_quantizers(
      graph, state,
      {{.formats = {{TensorRole::Weights, "binary:scaled"}, {TensorRole::Embeddings, "binary"}}}});
  EXPECT_EQ(print(graph, "w/quantized"),
            "w/quantized = quantize(w, none, none, m) {format=\"binary:scaled\"} : f32[2,3]");
  EXPECT_EQ(graph.name(graph.input(graph.at("y"), 1)), "w/quantized/masked");
  EXPECT_EQ(print(graph, "t/quantized"),
            "t/quantized = quantize(t) {format=\"binary\"} : f32[5,3]");
  EXPECT_EQ(graph.name(graph.input(graph.at("e"), 1)), "t/quantized/masked");
  EXPECT_FALSE(graph.find("p").has_value());
}

}  // namespace
}  // namespace lathe::compress
