#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"
#include "lathe/core/passes/profile.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/models/family.h"

namespace lathe::models {
namespace {

Graph vit(const std::string& name) {
  const NamedModel named = *find_named_model(name);
  return build(*named.family, named.config, {.task = "classify"});
}

// As many as Dosovitskiy et al. 2021 and transformers count, with two labels.
TEST(Vit, HasAsManyParametersAsElsewhere) {
  Graph graph = vit("vit-base");
  EXPECT_EQ(profile(graph).parameters, 85800194);
}

TEST(Vit, CutsAnImageIntoPatchesBehindATokenOfItsOwn) {
  const Graph graph = vit("vit:1x28x28,p7,w64,l1,h4");
  EXPECT_EQ(print(graph, "vit.embeddings.patch_embeddings.patches"),
            "vit.embeddings.patch_embeddings.patches = "
            "reshape(vit.embeddings.patch_embeddings.turn) : f32[B,16,49]");
  EXPECT_EQ(print(graph, "vit.embeddings.concat"),
            "vit.embeddings.concat = concat(vit.embeddings.first, "
            "vit.embeddings.patch_embeddings.projection) {axis=1} : f32[B,17,64]");
}

TEST(Vit, RefusesImagesThatPatchesDoNotFill) {
  EXPECT_EQ(error_text([] { vit("vit:1x28x28,p5"); }),
            "image_size 28 is not a multiple of patch_size 5");
  EXPECT_EQ(error_text([] { vit("vit:28"); }),
            "vit:28: \"28\": expected vit:CHANNELSxSIZExSIZE,pPATCH,wWIDTH,lLAYERS,hHEADS, such as "
            "vit:1x28x28,p7,w64,l4,h4");
}

TEST(Vit, RefusesHeadsThatDoNotMakeTheWidth) {
  EXPECT_EQ(error_text([] {
              NamedModel named = *find_named_model("vit:1x28x28,p7,w64,l1,h4");
              named.config["head_dim"] = std::int64_t{8};
              build(*named.family, named.config, {.task = "classify"});
            }),
            "head_dim 8 is not supported: expected 16, hidden_size by num_attention_heads");
}

}  // namespace
}  // namespace lathe::models
