#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lathe/data/token_table.h"

namespace lathe::data {

/// Cuts words into the longest tokens of a vocabulary from left to right, as WordPiece does.
class LongestPieces {
 public:
  LongestPieces() = default;
  /// Tokens that begin with the prefix go on with a word. A token given twice keeps its last id.
  LongestPieces(const std::vector<std::string>& tokens, const std::string& prefix);

  /// The tokens that begin a word.
  const TokenTable& words() const { return words_; }
  /// Appends the ids of a word, TokenTable::kPadding bytes after which must be readable; false,
  /// with some of them there, where no token goes on.
  bool append_ids(const char* word, std::size_t length, std::vector<std::int32_t>& ids) const;

 private:
  TokenTable words_;          // tokens that begin a word
  TokenTable continuations_;  // tokens that go on, without their prefix
};

}  // namespace lathe::data
