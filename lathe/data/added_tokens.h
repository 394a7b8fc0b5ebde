#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/data/byte_trie.h"
#include "lathe/data/tokenizer_json.h"

namespace lathe::data {

/// Finds added tokens in a text: the leftmost and longest first, none overlapping.
class AddedTokens {
 public:
  /// A part of a text: an added token, or what stands between two (id -1).
  struct Part {
    std::size_t begin, end;
    std::int32_t id;
  };

  /// `texts` are what is looked for, one for each token.
  explicit AddedTokens(std::vector<AddedToken> tokens = {}, std::vector<std::string> texts = {});

  bool empty() const { return tokens_.empty(); }
  /// The parts of a text from left to right; none of the texts between tokens is empty.
  std::vector<Part> cut(std::string_view text) const;

 private:
  std::vector<AddedToken> tokens_;
  ByteTrie trie_;                     // to a token's place in the list
  std::array<bool, 256> is_first_{};  // the bytes with which one begins
};

}  // namespace lathe::data
