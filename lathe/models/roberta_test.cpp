#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"
#include "lathe/core/passes/profile.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/models/family.h"

namespace lathe::models {
namespace {

Graph roberta(const char* config, const BuildOptions& options) {
  return build(FamilyRegistry::instance().at("roberta", "model"), parse_attributes(config),
               options);
}

// As many as transformers counts, with two labels.
TEST(Roberta, HasAsManyParametersAsElsewhere) {
  const NamedModel named = *find_named_model("roberta-base");
  Graph graph = build(*named.family, named.config, {.task = "classify"});
  EXPECT_EQ(profile(graph).parameters, 124647170);
}

// Pairs would be fed with type 1, and the table has one row.
TEST(Roberta, TakesNoTokenTypes) {
  for (const TaskRecord& task : FamilyRegistry::instance().at("roberta", "model").tasks)
    EXPECT_TRUE(task.optional_inputs.empty()) << task.name;
}

TEST(Roberta, CountsPositionsFromBehindThePadding) {
  const Graph graph =
      roberta("hidden_size=32, num_hidden_layers=1, num_attention_heads=4", {.task = "encode"});
  EXPECT_EQ(print(graph, "roberta.embeddings.position_ids"),
            "roberta.embeddings.position_ids = positions(input_ids) {first=2} : i32[B,L]");
  EXPECT_EQ(error_text(
                [] { roberta("max_position_embeddings=4, pad_token_id=3", {.task = "classify"}); }),
            "pad_token_id 3: expected 0 to 2, for positions count from behind it");
}

}  // namespace
}  // namespace lathe::models
