#include "lathe/models/rotary_decoder.h"

namespace lathe::models::qwen2 {
namespace {

Graph build(const AttributeReader& config, const BuildOptions& options) {
  if (config.flag("use_sliding_window"))
    fail("use_sliding_window is true, which is not supported: expected false");
  return build_rotary_decoder(config, {.projections = true}, options);
}

ModelFamily family() {
  ModelFamily family = rotary_decoder_family(
      "qwen2", "Qwen2",
      {.vocabulary = 151936, .intermediate = 22016, .positions = 32768, .kv_heads = 32});
  family.summary = "Llama's decoder as Qwen2 configures it: biases in front of attention";
  family.config.push_back({"use_sliding_window", false, "look back at some tokens only"});
  family.build = build;
  return family;
}

const Register registration{family()};

}  // namespace
}  // namespace lathe::models::qwen2
