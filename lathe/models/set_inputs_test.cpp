#include "lathe/models/set_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/core/graph_difference.h"
#include "lathe/core/graph_text.h"
#include "lathe/core/pass.h"
#include "lathe/core/testing/error_text.h"

namespace lathe::models {
namespace {

using testing::ElementsAre;

struct Small {
  const ModelFamily& family = FamilyRegistry::instance().at("bert", "model");
  Attributes config = parse_attributes(
      "vocab_size=50, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, "
      "intermediate_size=16, max_position_embeddings=16");
  Graph graph(std::vector<std::string> inputs, const char* task = "classify") const {
    return build(family, config, {.task = task, .inputs = std::move(inputs)});
  }
  void set(Graph& graph, const std::vector<std::string>& names,
           const char* task = "classify") const {
    set_inputs(graph, family, find_task(family, task), names);
  }
};

const std::vector<std::vector<std::string>> kChoices{
    {"input_ids"},
    {"input_ids", "labels"},
    {"input_ids", "attention_mask"},
    {"input_ids", "attention_mask", "labels"},
    {"input_ids", "attention_mask", "token_type_ids", "labels"}};

TEST(SetInputs, MakesOfAnyGraphTheOneTheFamilyBuildsWithThoseInputs) {
  const Small small;
  for (const char* task : {"classify", "mlm"})
    for (const auto& from : kChoices)
      for (const auto& to : kChoices) {
        Graph graph = small.graph(from, task);
        small.set(graph, to, task);
        EXPECT_EQ(describe_difference(graph, small.graph(to, task)), std::nullopt)
            << fmt::format("{}: {} to {}", task, fmt::join(from, ","), fmt::join(to, ","));
      }
}

TEST(SetInputs, KeepsWhatPassesDidToTheGraph) {
  const Small small;
  Graph graph = small.graph({"input_ids", "attention_mask", "labels"});
  ASSERT_GT(run_pass("remove-dropout", graph), 0);
  const NodeId classifier = graph.at("classifier");
  const Value weight = graph.input(classifier, 1);
  const Value mask{graph.insert_before(classifier, {.name = "classifier.mask",
                                                    .op = "state",
                                                    .inputs = {},
                                                    .attributes = {{"role", std::string("mask")}},
                                                    .types = {graph.type(weight)}}),
                   0};
  const Value pruned{
      graph.insert_before(classifier,
                          {.name = "classifier/pruned", .op = "mul", .inputs = {weight, mask}}),
      0};
  graph.set_input(classifier, 1, pruned);

  small.set(graph, {"input_ids"});
  EXPECT_THAT(input_names(graph), ElementsAre("input_ids"));
  EXPECT_EQ(print(graph, "classifier"),
            "classifier = linear(bert.pooler.activation, classifier/pruned, classifier.bias) : "
            "f32[B,2]");
  EXPECT_TRUE(graph.nodes_of("dropout").empty());
  EXPECT_EQ(graph.attribute(graph.at("classifier.mask")).text("role"), "mask");
  EXPECT_FALSE(graph.output("loss"));
  small.set(graph, {"input_ids", "labels"});
  EXPECT_EQ(print(graph, "loss/cross_entropy"),
            "loss/cross_entropy = cross_entropy(classifier, labels) : f32[], f32[]");
}

TEST(SetInputs, RefusesToDropAnInputThatNothingStandsInFor) {
  const Small small;
  Graph graph = small.graph({"input_ids"});
  EXPECT_EQ(error_text([&] { small.set(graph, {"attention_mask"}); }),
            "bert needs the input input_ids");
}

TEST(SetInputs, RefusesToAddAnInputWhoseStandInIsGone) {
  const Small small;
  Graph graph = small.graph({"input_ids"});
  graph.rename(graph.at("attention_mask"), "mask");
  EXPECT_EQ(error_text([&] {
              small.set(graph, {"input_ids", "attention_mask"});
            }),
            "the graph has no place for the input \"attention_mask\": expected a full_like "
            "\"attention_mask\"");
}

TEST(SetInputs, RefusesLabelsWhereThereAreNoLogits) {
  const Small small;
  Graph graph = small.graph({"input_ids"}, "classify");
  graph.set_output("other", *graph.output("logits"));
  graph.remove_output("logits");
  EXPECT_EQ(error_text([&] {
              small.set(graph, {"input_ids", "labels"});
            }),
            "the graph has no output \"logits\" that labels could be compared with");
}

}  // namespace
}  // namespace lathe::models
