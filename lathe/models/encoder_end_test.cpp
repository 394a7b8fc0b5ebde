#include "lathe/models/encoder_end.h"

#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"

namespace lathe::models {
namespace {

TEST(EncoderEnd, GivesALogitForEachLabelOfEachToken) {
  for (const auto& [family, config] :
       {std::pair("bert", "hidden_size=8, num_hidden_layers=1, num_attention_heads=2"),
        std::pair("roberta", "hidden_size=8, num_hidden_layers=1, num_attention_heads=2"),
        std::pair("electra", "hidden_size=8, num_hidden_layers=1, num_attention_heads=2"),
        std::pair("distilbert", "dim=8, n_layers=1, n_heads=2")}) {
    const Graph graph = build(FamilyRegistry::instance().at(family, "model"),
                              parse_attributes(config), {.task = "tokens", .num_labels = 5});
    EXPECT_EQ(print(graph, "classifier"),
              "classifier = linear(dropout, classifier.weight, classifier.bias) : f32[B,L,5]")
        << family;
    EXPECT_EQ(print(graph, "labels"), "labels = input() : i32[B,L]") << family;
  }
}

}  // namespace
}  // namespace lathe::models
