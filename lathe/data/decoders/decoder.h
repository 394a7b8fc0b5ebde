#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lathe::data {

/// A step that turns tokens back into text; immutable, and equal to the step of that name in
/// Hugging Face's library.
class Decoder {
 public:
  virtual ~Decoder() = default;
  /// Changes the tokens, or makes others of them; what the last step leaves is joined.
  virtual void decode(std::vector<std::string>& tokens) const = 0;
};

/// A kind of decoder, by the `type` that tokenizer.json gives it.
struct DecoderKind {
  std::string name;
  std::unique_ptr<const Decoder> (*make)(const nlohmann::json& description) = nullptr;
};

/// The decoder that is so described; nullptr for null. Fails by name where the type is unknown.
std::unique_ptr<const Decoder> make_decoder(const nlohmann::json* description);

}  // namespace lathe::data
