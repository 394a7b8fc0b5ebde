#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/data/normalizers/normalizer.h"

namespace lathe::data {

/// A text and the pieces it is cut into so far, from left to right and none of them empty. What no
/// piece covers is gone.
struct CutText {
  struct Piece {
    std::size_t begin, length;
    bool operator==(const Piece&) const = default;
  };

  explicit CutText(NormalizedText whole)
      : text(std::move(whole.text)), is_at_start(whole.is_at_start) {
    if (!text.empty()) pieces.push_back({0, text.size()});
  }
  std::string_view view(const Piece& piece) const {
    return std::string_view(text).substr(piece.begin, piece.length);
  }

  std::string text;
  std::vector<Piece> pieces;
  /// Whether the text begins with the first character of all that is encoded.
  bool is_at_start;
};

/// A step that cuts a text into pieces, and each of them into smaller ones; immutable, and equal to
/// the step of that name in Hugging Face's library.
class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void cut(CutText& text) const = 0;
};

/// A kind of pre-tokenizer, by the `type` that tokenizer.json gives it.
struct PreTokenizerKind {
  std::string name;
  std::unique_ptr<const PreTokenizer> (*make)(const nlohmann::json& description) = nullptr;
};

/// The pre-tokenizer that is so described; nullptr for null. Fails by name where the type is
/// unknown.
std::unique_ptr<const PreTokenizer> make_pre_tokenizer(const nlohmann::json* description);

}  // namespace lathe::data
