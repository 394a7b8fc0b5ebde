#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"
#include "lathe/core/passes/profile.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/models/family.h"

namespace lathe::models {
namespace {

Graph electra(const char* config, const BuildOptions& options) {
  return build(FamilyRegistry::instance().at("electra", "model"), parse_attributes(config),
               options);
}

// As many as transformers counts for the configuration it starts from, with two labels.
TEST(Electra, HasAsManyParametersAsElsewhere) {
  const NamedModel named = *find_named_model("electra-small");
  Graph graph = build(*named.family, named.config, {.task = "classify"});
  EXPECT_EQ(profile(graph).parameters, 13549314);
}

TEST(Electra, WidensNarrowEmbeddingsOnly) {
  const char* const sizes = "vocab_size=50, hidden_size=32, num_hidden_layers=1, ";
  const auto has_projection = [&](const char* width) {
    return electra((std::string(sizes) + width).c_str(), {.task = "encode"})
        .find("electra.embeddings_project")
        .has_value();
  };
  EXPECT_TRUE(has_projection("embedding_size=16"));
  EXPECT_FALSE(has_projection("embedding_size=32"));
}

}  // namespace
}  // namespace lathe::models
