#include "lathe/models/rotary_decoder.h"

namespace lathe::models::mistral {
namespace {

Graph build(const AttributeReader& config, const BuildOptions& options) {
  const std::int64_t window = config.integer("sliding_window");
  const std::int64_t positions = config.integer("max_position_embeddings");
  if (window != 0 && window < positions)
    fail(
        "sliding_window {} is below max_position_embeddings {}, which is not supported: expected "
        "as much, or null",
        window, positions);
  return build_rotary_decoder(config, {}, options);
}

ModelFamily family() {
  ModelFamily family = rotary_decoder_family(
      "mistral", "Mistral", {.intermediate = 14336, .positions = 131072, .kv_heads = 8});
  family.summary = "Llama's decoder as Mistral configures it";
  family.config.push_back(
      {"sliding_window", std::int64_t{4096}, "tokens that are looked back at; 0: all"});
  family.config_places.push_back({.key = "sliding_window", .null = std::int64_t{0}});
  family.build = build;
  return family;
}

const Register registration{family()};

}  // namespace
}  // namespace lathe::models::mistral
