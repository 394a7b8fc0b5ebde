#include "lathe/models/rotary_decoder.h"

namespace lathe::models::llama {
namespace {

Graph build(const AttributeReader& config, const BuildOptions& options) {
  const bool has_biases = config.flag("attention_bias");
  return build_rotary_decoder(
      config,
      {.projections = has_biases, .output = has_biases, .feed_forward = config.flag("mlp_bias")},
      options);
}

ModelFamily family() {
  ModelFamily family = rotary_decoder_family("llama", "Llama", {});
  family.summary = "transformer decoder with rotary positions, for text generation";
  family.config.push_back({"attention_bias", false, "whether attention's linears add a bias"});
  family.config.push_back({"mlp_bias", false, "whether the feed-forward part's do"});
  Attributes small = rotary_decoder_sizes(12, 768, 12, 4, 2048);
  small["tie_word_embeddings"] = true;
  family.presets = {{"llama-tiny", rotary_decoder_sizes(2, 128, 4, 2, 344)}, {"llama-100m", small}};
  family.build = build;
  return family;
}

const Register registration{family()};

}  // namespace
}  // namespace lathe::models::llama
