#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"
#include "lathe/core/passes/profile.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/models/family.h"
#include "lathe/models/tensor_names.h"

// Llama and the families that are configurations of it. That they compute what they should is the
// matter of the fixture's test in train, and of bench/family_rival.py.
namespace lathe::models {
namespace {

using testing::ElementsAre;

Graph decoder(const char* family, const std::string& config, const BuildOptions& options) {
  return build(FamilyRegistry::instance().at(family, "model"), parse_attributes(config), options);
}

const std::string kSmall =
    "vocab_size=11, hidden_size=12, intermediate_size=20, num_hidden_layers=1, "
    "num_attention_heads=4, num_key_value_heads=2, head_dim=6";

std::int64_t num_parameters(const char* family, const char* config) {
  Graph graph = decoder(family, config, {.task = "causal-lm"});
  return profile(graph).parameters;
}

// As many as the published models of these sizes have: TinyLlama 1.1B, Mistral 7B, Qwen2 0.5B.
TEST(Llama, HasAsManyParametersAsElsewhere) {
  EXPECT_EQ(num_parameters("llama",
                           "hidden_size=2048, intermediate_size=5632, num_hidden_layers=22, "
                           "num_key_value_heads=4"),
            1'100'048'384);
  EXPECT_EQ(num_parameters("mistral", "sliding_window=0"), 7'241'732'096);
  EXPECT_EQ(num_parameters("qwen2",
                           "hidden_size=896, intermediate_size=4864, num_hidden_layers=24, "
                           "num_attention_heads=14, num_key_value_heads=2, "
                           "tie_word_embeddings=true"),
            494'032'768);
}

TEST(Llama, NamesItsStatesAsHuggingFaceDoes) {
  const auto names = [](const char* family, const std::string& more) {
    const Graph graph = decoder(family, kSmall + more, {.task = "causal-lm"});
    std::vector<std::string> found;
    for (const NodeId id : graph.nodes_of("state")) {
      std::string name = graph.name(id);
      if (const auto at = name.find("layers.0."); at != name.npos) name = name.substr(at + 9);
      found.push_back(name);
    }
    return found;
  };
  EXPECT_THAT(
      names("llama", ""),
      ElementsAre("model.embed_tokens.weight", "input_layernorm.weight", "self_attn.q_proj.weight",
                  "self_attn.k_proj.weight", "self_attn.v_proj.weight", "self_attn.o_proj.weight",
                  "post_attention_layernorm.weight", "mlp.gate_proj.weight", "mlp.up_proj.weight",
                  "mlp.down_proj.weight", "model.norm.weight", "lm_head.weight"));
  EXPECT_THAT(
      names("qwen2", ", tie_word_embeddings=true"),
      ElementsAre("model.embed_tokens.weight", "input_layernorm.weight", "self_attn.q_proj.weight",
                  "self_attn.q_proj.bias", "self_attn.k_proj.weight", "self_attn.k_proj.bias",
                  "self_attn.v_proj.weight", "self_attn.v_proj.bias", "self_attn.o_proj.weight",
                  "post_attention_layernorm.weight", "mlp.gate_proj.weight", "mlp.up_proj.weight",
                  "mlp.down_proj.weight", "model.norm.weight"));
}

TEST(Llama, SharesItsKeysAmongGroupsOfQueries) {
  const Graph graph = decoder("llama", kSmall, {.task = "encode"});
  const std::string self = "model.layers.0.self_attn.";
  EXPECT_EQ(print(graph, self + "attention"),
            self + "attention = attention(" + self + "q_rope, " + self + "k_rope, " + self +
                "v_proj, attention_mask) {causal=true, dropout=0.0, heads=4, kv_heads=2, site=0} : "
                "f32[B,L,24]");
  EXPECT_EQ(print(graph, self + "k_rope"),
            self + "k_rope = rope(" + self +
                "k_proj, model.position_ids) {heads=2, theta=10000.0} : f32[B,L,12]");
}

TEST(Llama, StretchesPositionsAsItsConfigurationSays) {
  const auto rope = [](const char* more) {
    const Graph graph = decoder("llama", kSmall + more, {.task = "encode"});
    const NodeId id = graph.at("model.layers.0.self_attn.q_rope");
    return to_text(graph.attributes(id));
  };
  EXPECT_EQ(rope(", rope_type=\"linear\", rope_factor=4.0"),
            "{factor=4.0, heads=4, theta=10000.0}");
  EXPECT_EQ(rope(", rope_type=\"llama3\", rope_factor=8.0, rope_theta=500000.0, "
                 "original_max_position_embeddings=8192"),
            "{factor=8.0, heads=4, high_turns=4.0, low_turns=1.0, original_positions=8192, "
            "theta=500000.0}");
}

TEST(Llama, PassesOverWhatFilesHoldOfItsRotation) {
  const ModelFamily& family = FamilyRegistry::instance().at("llama", "model");
  EXPECT_TRUE(is_meaningless(family, "model.layers.3.self_attn.rotary_emb.inv_freq"));
  EXPECT_FALSE(is_meaningless(family, "model.layers.3.self_attn.q_proj.weight"));
}

TEST(Llama, RefusesConfigurationsThatItCannotBuild) {
  const auto refusal = [](const char* family, const std::string& config) {
    return error_text([&] { decoder(family, config, {.task = "causal-lm"}); });
  };
  EXPECT_EQ(refusal("llama", "rope_type=\"yarn\", rope_factor=4.0"),
            "rope_type is \"yarn\", which is not supported: expected default, linear or llama3");
  EXPECT_EQ(refusal("llama", "rope_type=\"llama3\", rope_factor=8.0"),
            "original_max_position_embeddings is 0: rope_type llama3 expects 1 or more");
  EXPECT_EQ(refusal("llama", "rope_type=\"linear\", rope_factor=0.5"),
            "the factor of rope_type linear is 0.5: expected 1 or more");
  EXPECT_EQ(refusal("llama", "rope_type=\"linear\""),
            "rope_type linear has no factor: expected 1 or more");
  EXPECT_EQ(refusal("llama", "rope_factor=4.0"),
            "the factor of rope_type default is 4: expected 1, or linear or llama3");
  EXPECT_EQ(refusal("llama", "partial_rotary_factor=0.5"),
            "partial_rotary_factor is 0.5, which is not supported: expected 1");
  EXPECT_EQ(refusal("llama", "rms_norm_eps=-1.0"),
            "the epsilon of model.layers.0.input_layernorm is -1: expected 0 or more");
  EXPECT_EQ(refusal("llama", "hidden_size=30, num_attention_heads=4"),
            "hidden_size 30 is not a multiple of num_attention_heads 4");
  EXPECT_EQ(refusal("llama", "num_attention_heads=32, num_key_value_heads=5"),
            "num_attention_heads 32 is not a multiple of num_key_value_heads 5");
  EXPECT_EQ(refusal("llama", "head_dim=7"),
            "heads have 7 features, which cannot be turned in pairs: expected an even number");
  EXPECT_EQ(refusal("mistral", "sliding_window=4096"),
            "sliding_window 4096 is below max_position_embeddings 131072, which is not supported: "
            "expected as much, or null");
  EXPECT_EQ(refusal("qwen2", "use_sliding_window=true"),
            "use_sliding_window is true, which is not supported: expected false");
}

}  // namespace
}  // namespace lathe::models
