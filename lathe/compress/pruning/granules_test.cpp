#include "lathe/compress/pruning/granules.h"

#include <gtest/gtest.h>

#include "lathe/compress/lora.h"
#include "lathe/core/graph_text.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/io/testing/tiny_bert.h"
#include "lathe/models/family.h"

namespace lathe::compress {
namespace {

Graph build(const std::string& name, Attributes config, const std::string& task) {
  const auto named = models::find_named_model(name);
  for (const auto& [key, value] : named->config) config.emplace(key, value);
  return models::build(*named->family, config, {.task = task, .num_labels = 2});
}

Graph tiny_bert() {
  return build("bert-tiny",
               {{"hidden_size", 8},
                {"intermediate_size", 16},
                {"num_attention_heads", 2},
                {"num_hidden_layers", 1},
                {"vocab_size", 20}},
               "classify");
}

std::vector<PruningUnit> units_of(const Graph& graph, const char* granularity) {
  return make_units(graph, find_prunable(graph), parse_granularity(granularity));
}

// "w rows 0+8/4" for tiles of four of the first eight rows.
std::vector<std::string> describe(const PruningUnit& unit) {
  std::vector<std::string> lines;
  for (const GranulePart& part : unit.parts) {
    const bool by_rows = part.tile_columns == part.matrix_columns;
    lines.push_back(
        by_rows ? fmt::format("{} rows {}+{}/{}", part.state, part.row, part.rows, part.tile_rows)
                : fmt::format("{} columns {}+{}/{}", part.state, part.column, part.columns,
                              part.tile_columns));
  }
  return lines;
}

TEST(FindPrunable, TakesWeightsOfLayersAndTables) {
  std::vector<std::string> names;
  for (const PrunableWeight& weight : find_prunable(tiny_bert()))
    names.push_back(fmt::format("{} {}x{}{}", weight.state, weight.rows, weight.columns,
                                weight.is_table ? " table" : ""));
  EXPECT_EQ(names,
            (std::vector<std::string>{"bert.embeddings.word_embeddings.weight 20x8 table",
                                      "bert.embeddings.token_type_embeddings.weight 2x8 table",
                                      "bert.embeddings.position_embeddings.weight 512x8 table",
                                      "bert.encoder.layer.0.attention.self.query.weight 8x8",
                                      "bert.encoder.layer.0.attention.self.key.weight 8x8",
                                      "bert.encoder.layer.0.attention.self.value.weight 8x8",
                                      "bert.encoder.layer.0.attention.output.dense.weight 8x8",
                                      "bert.encoder.layer.0.intermediate.dense.weight 16x8",
                                      "bert.encoder.layer.0.output.dense.weight 8x16",
                                      "bert.pooler.dense.weight 8x8", "classifier.weight 2x8"}));
}

TEST(FindPrunable, TakesATiedTableOnce) {
  const Graph graph =
      build("gpt2-tiny", {{"n_embd", 8}, {"n_layer", 1}, {"vocab_size", 20}}, "causal-lm");
  const std::vector<PrunableWeight> weights = find_prunable(graph);
  EXPECT_EQ(weights.front().state, "transformer.wte.weight");
  EXPECT_TRUE(weights.front().is_table);
  EXPECT_EQ(weights.front().readers.size(), 2u);
  EXPECT_EQ(std::ranges::count(weights, "transformer.wte.weight", &PrunableWeight::state), 1);
}

TEST(FindPrunable, LooksThroughMasksAndQuantizersAndLeavesLoraOut) {
  Graph graph = parse_graph(R"(
    x = input() : f32[B,4]
    w = state() : f32[6,4]
    m = state() {role="mask"} : f32[6,4]
    p = mul(w, m)
    q = quantize(p) {format="mxint:8"}
    y = linear(x, q)
    output y <- y
  )");
  State state{{"w", Tensor(DType::F32, {6, 4})}};
  const std::vector<PrunableWeight> before = find_prunable(graph);
  ASSERT_EQ(before.size(), 1u);
  EXPECT_EQ(before[0].state, "w");
  graph = parse_graph(R"(
    x = input() : f32[B,4]
    w = state() : f32[6,4]
    y = linear(x, w)
    output y <- y
  )");
  insert_lora(graph, state, {.rank = 2, .targets = {"y"}}, 1);
  const std::vector<PrunableWeight> after = find_prunable(graph);
  ASSERT_EQ(after.size(), 1u);
  EXPECT_EQ(after[0].state, "w");
}

TEST(MakeUnits, PutsAllOfAHeadTogether) {
  const std::vector<PruningUnit> units = units_of(tiny_bert(), "head");
  ASSERT_EQ(units.size(), 1u);
  EXPECT_EQ(units[0].granules, 2);
  const std::string self = "bert.encoder.layer.0.attention.self.";
  EXPECT_EQ(
      describe(units[0]),
      (std::vector<std::string>{self + "query.weight rows 0+8/4", self + "query.bias columns 0+8/4",
                                self + "key.weight rows 0+8/4", self + "key.bias columns 0+8/4",
                                self + "value.weight rows 0+8/4", self + "value.bias columns 0+8/4",
                                "bert.encoder.layer.0.attention.output.dense.weight "
                                "columns 0+8/4"}));
}

TEST(MakeUnits, FindsHeadsInAJointProjection) {
  const Graph graph =
      build("gpt2-tiny", {{"n_embd", 8}, {"n_layer", 1}, {"vocab_size", 20}}, "classify");
  const std::vector<PruningUnit> units = units_of(graph, "head");
  ASSERT_EQ(units.size(), 1u);
  const std::string attention = "transformer.h.0.attn.";
  EXPECT_EQ(describe(units[0]),
            (std::vector<std::string>{
                attention + "c_attn.weight rows 0+8/4", attention + "c_attn.bias columns 0+8/4",
                attention + "c_attn.weight rows 8+8/4", attention + "c_attn.bias columns 8+8/4",
                attention + "c_attn.weight rows 16+8/4", attention + "c_attn.bias columns 16+8/4",
                attention + "c_proj.weight columns 0+8/4"}));
}

TEST(MakeUnits, PrunesHeadsThatShareKeysTogether) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[B,L,6]
    positions = input() : i32[B,L]
    wq = state() : f32[16,6]
    wk = state() : f32[8,6]
    wv = state() : f32[8,6]
    wo = state() : f32[6,16]
    q = linear(x, wq)
    k = linear(x, wk)
    v = linear(x, wv)
    qr = rope(q, positions) {heads=4}
    kr = rope(k, positions) {heads=2}
    a = attention(qr, kr, v) {heads=4, kv_heads=2}
    y = linear(a, wo)
    output y <- y
  )");
  const std::vector<PruningUnit> units = units_of(graph, "head");
  ASSERT_EQ(units.size(), 1u);
  EXPECT_EQ(units[0].granules, 2);
  EXPECT_EQ(describe(units[0]), (std::vector<std::string>{"wq rows 0+16/8", "wk rows 0+8/4",
                                                          "wv rows 0+8/4", "wo columns 0+16/8"}));
}

TEST(MakeUnits, PutsAllOfANeuronTogether) {
  const std::vector<PruningUnit> units = units_of(tiny_bert(), "neuron");
  ASSERT_EQ(units.size(), 2u);
  const std::string layer = "bert.encoder.layer.0.";
  EXPECT_EQ(describe(units[0]),
            (std::vector<std::string>{layer + "intermediate.dense.weight rows 0+16/1",
                                      layer + "intermediate.dense.bias columns 0+16/1",
                                      layer + "output.dense.weight columns 0+16/1"}));
  // A pooler before a classifier is two layers with a function between them as well.
  EXPECT_EQ(units[1].name, "bert.pooler.dense");
}

TEST(MakeUnits, TakesBothLayersOfAGatedPart) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[B,4]
    wg = state() : f32[6,4]
    wu = state() : f32[6,4]
    wd = state() : f32[4,6]
    g = linear(x, wg)
    s = silu(g)
    u = linear(x, wu)
    p = mul(s, u)
    y = linear(p, wd)
    z = add(y, x)
    output z <- z
  )");
  const std::vector<PruningUnit> units = units_of(graph, "neuron");
  ASSERT_EQ(units.size(), 1u);
  EXPECT_EQ(describe(units[0]),
            (std::vector<std::string>{"wg rows 0+6/1", "wu rows 0+6/1", "wd columns 0+6/1"}));
}

TEST(MakeUnits, LeavesOutWhatSomebodyElseReads) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[B,4]
    w = state() : f32[6,4]
    v = state() : f32[4,6]
    h = linear(x, w)
    a = relu(h)
    y = linear(a, v)
    output y <- y
    output hidden <- h
  )");
  EXPECT_EQ(error_text([&] { units_of(graph, "neuron"); }),
            "granularity neuron: none of the weights that count belongs to a feed-forward part, "
            "two layers with functions of single elements between them");
  EXPECT_EQ(error_text([&] { units_of(graph, "head"); }),
            "granularity head: none of the weights that count belongs to heads of an attention");
  EXPECT_EQ(error_text([&] { units_of(graph, "vocabulary"); }),
            "granularity vocabulary: no table that an input is looked up in counts");
}

TEST(MakeUnits, LooksPastLora) {
  Graph graph = tiny_bert();
  State state;
  for (const NodeId id : graph.nodes_of("state"))
    state[graph.name(id)] = Tensor(DType::F32, graph.types(id)[0].dims({}));
  const std::vector<PruningUnit> heads = units_of(graph, "head"),
                                 neurons = units_of(graph, "neuron");
  insert_lora(graph, state, {.rank = 2, .dropout = 0.1, .targets = {"."}}, 1);
  EXPECT_EQ(units_of(graph, "head"), heads);
  EXPECT_EQ(units_of(graph, "neuron"), neurons);
}

TEST(MakeUnits, TakesTheTableOfAnInputAsVocabulary) {
  const std::vector<PruningUnit> units = units_of(tiny_bert(), "vocabulary");
  ASSERT_EQ(units.size(), 1u);
  EXPECT_EQ(units[0].name, "bert.embeddings.word_embeddings.weight");
  EXPECT_EQ(units[0].granules, 20);
}

TEST(MakeUnits, RefusesGroupsThatDoNotDivideARow) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[B,3,8,8]
    w = state() : f32[4,3,3,3]
    y = conv2d(x, w)
    output y <- y
  )");
  EXPECT_EQ(error_text([&] { units_of(graph, "2:4"); }),
            "layer \"y\": 2:4 does not divide its 27 inputs");
  EXPECT_EQ(units_of(graph, "row")[0].granules, 4);
}

}  // namespace
}  // namespace lathe::compress
