#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"
#include "lathe/core/pass.h"
#include "lathe/core/passes/profile.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/models/family.h"

namespace lathe::models {
namespace {

constexpr const char* kSizes =
    "hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, "
    "max_position_embeddings=32, relative_attention=true, pos_att_type=\"c2p|p2c\"";

Graph deberta(const char* family, const std::string& more = "", const char* task = "classify") {
  return build(FamilyRegistry::instance().at(family, "model"), parse_attributes(kSizes + more),
               {.task = task});
}

// Three terms of heads of 4: 1 / sqrt(12).
TEST(Deberta, ScoresDistancesWithQueriesAndKeys) {
  EXPECT_EQ(print(deberta("deberta"), "deberta.encoder.layer.0.attention.self.attention"),
            "deberta.encoder.layer.0.attention.self.attention = relative_attention("
            "deberta.encoder.layer.0.attention.self.q_bias/add, "
            "deberta.encoder.layer.0.attention.self.key, "
            "deberta.encoder.layer.0.attention.self.v_bias/add, attention_mask, none, "
            "deberta.encoder.layer.0.attention.self.pos_proj, "
            "deberta.encoder.layer.0.attention.self.pos_q_proj) "
            "{heads=2, scale=0.2886751345948129} : f32[B,L,8]");
}

TEST(Deberta, ProjectsDistancesAsTokensWhereKeysAreShared) {
  const Graph graph = deberta(
      "deberta-v2", ", position_buckets=8, share_att_key=true, norm_rel_ebd=\"layer_norm\"");
  const std::string self = "deberta.encoder.layer.0.attention.self.";
  EXPECT_EQ(print(graph, self + "pos_key_proj"),
            self + "pos_key_proj = linear(deberta.encoder.LayerNorm, " + self +
                "key_proj.weight, " + self + "key_proj.bias) : f32[16,8]");
}

// As many as transformers counts, with two labels.
TEST(Deberta, HasAsManyParametersAsElsewhere) {
  const auto num_parameters = [](const char* name) {
    const NamedModel named = *find_named_model(name);
    Graph graph = build(*named.family, named.config, {.task = "classify"});
    return profile(graph).parameters;
  };
  EXPECT_EQ(num_parameters("deberta-base"), 139193858);
  EXPECT_EQ(num_parameters("deberta-v3-base"), 184423682);
}

// Hugging Face's first head is as wide as an embedding, the other as a token.
TEST(Deberta, PredictsTokensByEitherHead) {
  EXPECT_EQ(print(deberta("deberta", ", embedding_size=4, vocab_size=16", "mlm"),
                  "cls.predictions.decoder"),
            "cls.predictions.decoder = linear(cls.predictions.transform.LayerNorm, "
            "deberta.embeddings.word_embeddings.weight, cls.predictions.bias) : f32[B,L,16]");
  EXPECT_EQ(print(deberta("deberta", ", tie_word_embeddings=false, vocab_size=16", "mlm"),
                  "cls.predictions.decoder"),
            "cls.predictions.decoder = linear(cls.predictions.transform.LayerNorm, "
            "cls.predictions.decoder.weight, cls.predictions.decoder.bias) : f32[B,L,16]");
  EXPECT_EQ(
      print(deberta("deberta-v2", ", legacy=false, vocab_size=16", "mlm"),
            "lm_predictions.lm_head.decoder"),
      "lm_predictions.lm_head.decoder = linear(lm_predictions.lm_head.LayerNorm, "
      "deberta.embeddings.word_embeddings.weight, lm_predictions.lm_head.bias) : f32[B,L,16]");
}

TEST(Deberta, IsPackedAsOthersAre) {
  for (const char* const family : {"deberta", "deberta-v2"})
    for (const char* const task : {"classify", "tokens", "mlm", "encode"}) {
      Graph graph = deberta(family, "", task);
      run_pass("pack-sequences", graph);
      EXPECT_TRUE(graph.find("offsets")) << family << " for " << task;
    }
}

TEST(Deberta, RefusesWhatIsNotBuilt) {
  EXPECT_EQ(error_text([] { deberta("deberta-v2", ", conv_kernel_size=3"); }),
            "conv_kernel_size 3: a convolution beside the first layer is not supported");
  EXPECT_EQ(error_text([] { deberta("deberta", ", talking_head=true"); }),
            "talking_head is true, which is not supported");
  EXPECT_EQ(error_text([] { deberta("deberta", ", legacy=false, embedding_size=4", "mlm"); }),
            "legacy is false: embedding_size 4 is not supported then, expected 8, the hidden_size");
  EXPECT_EQ(error_text([] { deberta("deberta", ", pooler_hidden_size=4"); }),
            "pooler_hidden_size 4 is not supported: expected 8, the hidden_size that it reads");
  EXPECT_EQ(
      error_text([] { deberta("deberta-v2", ", attention_head_size=2"); }),
      "attention_head_size 2 is not supported: expected 4, hidden_size by num_attention_heads");
}

}  // namespace
}  // namespace lathe::models
