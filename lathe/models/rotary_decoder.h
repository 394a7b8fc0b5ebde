#pragma once

#include <string>
#include <vector>

#include "lathe/models/family.h"

/// The decoder that Llama, Mistral, Qwen2 and their relatives are configurations of: RMS norms
/// before attention and feed-forward part, positions by rotation, key heads shared by groups of
/// query heads, a feed-forward part that is gated (Touvron et al. 2023).
namespace lathe::models {

/// What such a decoder starts from where a configuration says nothing.
struct RotaryDecoderDefaults {
  std::int64_t vocabulary = 32000, hidden = 4096, intermediate = 11008, layers = 32, heads = 32,
               positions = 2048;
  /// Heads of keys and values; 0: as many as query heads.
  std::int64_t kv_heads = 0;
};

/// Which of its linears add a bias.
struct RotaryDecoderBiases {
  bool projections = false;  ///< queries, keys and values
  bool output = false;       ///< what attention gives back
  bool feed_forward = false;
};

/// A record with all that these families share: tasks, names, and keys with `defaults`; `title` is
/// what Hugging Face's classes begin with. Keys of its own, summary, presets and `build` are left
/// to the family.
ModelFamily rotary_decoder_family(const std::string& name, const std::string& title,
                                  const RotaryDecoderDefaults& defaults);

/// Builds the decoder of a configuration with the keys of such a record.
Graph build_rotary_decoder(const AttributeReader& config, const RotaryDecoderBiases& biases,
                           const BuildOptions& options);

/// The keys that presets change.
Attributes rotary_decoder_sizes(std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                                std::int64_t kv_heads, std::int64_t intermediate);

}  // namespace lathe::models
