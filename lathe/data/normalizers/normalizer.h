#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

namespace lathe::data {

/// A text on its way to be cut.
struct NormalizedText {
  std::string text;
  /// Whether it begins with the first character of all that is encoded: what stands in front of a
  /// text may depend on it.
  bool is_at_start = true;
};

/// A step that changes a text before it is cut; immutable, and equal to the step of that name in
/// Hugging Face's library.
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual void normalize(NormalizedText& text) const = 0;
};

/// A kind of normalizer, by the `type` that tokenizer.json gives it.
struct NormalizerKind {
  std::string name;
  /// Makes it of its description, which is an object.
  std::unique_ptr<const Normalizer> (*make)(const nlohmann::json& description) = nullptr;
};

/// The normalizer that is so described; nullptr for null. Fails by name where the type is unknown.
std::unique_ptr<const Normalizer> make_normalizer(const nlohmann::json* description);

}  // namespace lathe::data
