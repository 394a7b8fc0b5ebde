#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"
#include "lathe/core/passes/profile.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/models/family.h"

namespace lathe::models {
namespace {

Graph distilbert(const char* config, const BuildOptions& options) {
  return build(FamilyRegistry::instance().at("distilbert", "model"), parse_attributes(config),
               options);
}

// As many as transformers counts for the configuration it starts from, with two labels.
TEST(DistilBert, HasAsManyParametersAsElsewhere) {
  const NamedModel named = *find_named_model("distilbert-base");
  Graph graph = build(*named.family, named.config, {.task = "classify"});
  EXPECT_EQ(profile(graph).parameters, 66955010);
}

TEST(DistilBert, DropsNothingBehindAnAttention) {
  const Graph graph =
      distilbert("vocab_size=50, dim=32, n_layers=1, n_heads=4, hidden_dim=64", {.task = "encode"});
  const std::string layer = "distilbert.transformer.layer.0.";
  EXPECT_EQ(print(graph, layer + "attention.add"),
            layer + "attention.add = add(" + layer +
                "attention.out_lin, distilbert.embeddings.dropout) : f32[B,L,32]");
}

TEST(DistilBert, RefusesHeadsThatDoNotDivideItsWidth) {
  EXPECT_EQ(error_text([] { distilbert("dim=30, n_heads=4", {.task = "classify"}); }),
            "dim 30 is not a multiple of n_heads 4");
}

}  // namespace
}  // namespace lathe::models
