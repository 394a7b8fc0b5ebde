#include "lathe/data/longest_pieces.h"

#include <algorithm>

namespace lathe::data {

LongestPieces::LongestPieces(const std::vector<std::string>& tokens, const std::string& prefix)
    : words_(tokens.size()), continuations_(tokens.size()) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::string_view token = tokens[i];
    const auto id = static_cast<std::int32_t>(i);
    // Looked up by the first piece too: a word may begin with the prefix when it is not
    // punctuation.
    words_.insert(token, id);
    if (token.starts_with(prefix)) continuations_.insert(token.substr(prefix.size()), id);
  }
}

bool LongestPieces::append_ids(const char* word, std::size_t word_length,
                               std::vector<std::int32_t>& ids) const {
  for (std::size_t start = 0; start < word_length;) {
    const TokenTable& table = start == 0 ? words_ : continuations_;
    std::size_t length = std::min(word_length - start, table.longest());
    std::int32_t id = TokenTable::kAbsent;
    for (; length > 0; --length) {
      // A piece ends where a code point does. Tokens are UTF-8, so other ends could not match:
      // this only saves looking.
      if (start + length < word_length && (word[start + length] & 0xC0) == 0x80) continue;
      id = table.find(word + start, length);
      if (id != TokenTable::kAbsent) break;
    }
    if (id == TokenTable::kAbsent) return false;
    ids.push_back(id);
    start += length;
  }
  return true;
}

}  // namespace lathe::data
