#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace lathe::data {

/// How SentencePiece writes spaces: as a visible character, and one more in front of a text.
struct Metaspace {
  enum class Prepend : std::uint8_t { Never, First, Always };
  std::string replacement = "\u2581";
  Prepend prepend = Prepend::Always;  ///< before every piece, or the first of a text
  bool is_split = true;               ///< whether pieces are cut in front of it
};

/// Reads the description of the pre-tokenizer or the decoder of that name.
Metaspace read_metaspace(const nlohmann::json& description);

}  // namespace lathe::data
