#include "lathe/train/transformer_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"
#include "lathe/core/pass.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/io/model.h"
#include "lathe/train/make_source.h"

namespace lathe::train {
namespace {

using testing::ElementsAre;

Graph packed(const std::string& model, std::int64_t layers, const char* key) {
  const io::Model loaded = io::load_model(model, {.task = "classify", .config = {{key, layers}}});
  Graph graph = loaded.graph;
  pack_inputs(graph, loaded);
  run_pass("remove-dropout", graph);
  return graph;
}

std::vector<std::string> names_of(const Graph& graph, const std::vector<Value>& values) {
  std::vector<std::string> names;
  for (const Value& value : values) names.push_back(graph.name(value.node));
  return names;
}

TEST(TransformerLayers, AreWhatBertCarriesPastItsAttention) {
  const Graph graph = packed("bert-tiny", 3, "num_hidden_layers");
  const TransformerLayers layers = find_transformer_layers(graph, *graph.output("logits"));
  EXPECT_EQ(layers.attentions.size(), 3u);
  EXPECT_THAT(names_of(graph, layers.inputs),
              ElementsAre("bert.embeddings.LayerNorm", "bert.encoder.layer.0.output.LayerNorm",
                          "bert.encoder.layer.1.output.LayerNorm"));
  EXPECT_EQ(graph.input(layers.chosen.node, 0).node,
            graph.at("bert.encoder.layer.2.output.LayerNorm"));
}

TEST(TransformerLayers, AreTheResidualStreamOfGpt2) {
  const Graph graph = packed("gpt2-tiny", 2, "n_layer");
  const TransformerLayers layers = find_transformer_layers(graph, *graph.output("logits"));
  ASSERT_EQ(layers.inputs.size(), 2u);
  // The sum of the embeddings, and of that with what layer 0 adds: not their norms.
  for (const Value& input : layers.inputs) EXPECT_TRUE(graph.is(input.node, "add"));
  EXPECT_TRUE(graph.type(layers.chosen).shape[0] == Size::symbol("S"));
}

TEST(TransformerLayers, FindsNoneWhereThereIsNoAttention) {
  const io::Model mlp = io::load_model("mlp:4,8,2");
  EXPECT_EQ(error_text([&] { find_transformer_layers(mlp.graph, *mlp.graph.output("logits")); }),
            "has no layers of attention over tokens");
}

TEST(TransformerLayers, NamesAnAttentionThatNothingIsCarriedPast) {
  const Graph graph = parse_graph(R"(
    symbols S, T
    x = input() : f32[T,4]
    offsets = input() : i32[S+1]
    a = attention(x, x, x, none, offsets) {heads=2} : f32[T,4]
    y = select_in_sequence(a, offsets) : f32[S,4]
    output logits <- y
  )");
  EXPECT_EQ(error_text([&] { find_transformer_layers(graph, *graph.output("logits")); }),
            "nothing is carried past its attention \"a\"");
}

TEST(MatchingLayer, SpreadsLayersEvenly) {
  EXPECT_EQ(matching_layer(0, 2, 12), 0u);
  EXPECT_EQ(matching_layer(1, 2, 12), 6u);
  EXPECT_EQ(matching_layer(2, 2, 12), 12u);
  EXPECT_EQ(matching_layer(1, 3, 4), 1u);
  EXPECT_EQ(matching_layer(2, 3, 4), 3u);
  EXPECT_EQ(matching_layer(3, 3, 4), 4u);
  for (std::size_t i = 0; i <= 5; ++i) EXPECT_EQ(matching_layer(i, 5, 5), i);
}

}  // namespace
}  // namespace lathe::train
