#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lathe/data/merge_table.h"
#include "lathe/data/token_table.h"
#include "lathe/data/tokenizer.h"
#include "lathe/data/tokenizer_json.h"

namespace lathe::data {

/// GPT-2's tokenizer: text to token ids, equal to the Hugging Face tokenizers library.
///
/// Added tokens are matched in the raw text; the rest is cut into pieces (gpt2_split.h), and the
/// bytes of each piece are merged pair by pair, the pair of lowest rank first and of equal ones the
/// leftmost, until no pair merges.
class ByteLevelBpe final : public Tokenizer {
 public:
  struct Options {
    /// Whether a text that does not begin with a space is cut as if it did.
    bool add_prefix_space = false;
    /// Tokens matched in the raw text; those that are not `normalized` first.
    std::vector<AddedToken> added_tokens;
  };

  /// Reads `tokenizer.json`, or else `vocab.json` and `merges.txt`, and `tokenizer_config.json`.
  static ByteLevelBpe load(const TokenizerSource& source);

  /// Makes a tokenizer of a vocabulary whose tokens are written in the byte alphabet, and of pairs
  /// of such tokens in the order of their ranks.
  ByteLevelBpe(Vocabulary vocabulary,
               const std::vector<std::pair<std::string, std::string>>& merges, Options options);

  const Options& options() const { return options_; }

 private:
  class Encoder;
  struct RawToken {
    std::string text;
    std::int32_t id;
  };
  struct RawTokens {
    std::vector<RawToken> tokens;      // longest first
    std::array<bool, 256> is_first{};  // the bytes with which one begins
  };

  void append_ids(std::string_view text, std::vector<std::int32_t>& ids,
                  std::size_t enough) const override;
  void add_merges(const std::vector<std::pair<std::string, std::string>>& merges);
  void find_whole_tokens();
  void add_raw_tokens();
  std::int32_t require_token(std::string_view token) const;
  void cut(std::string_view text, std::size_t round, Encoder& encoder) const;

  Options options_;
  TokenTable ids_;  // by the token as it is written
  std::array<std::int32_t, 256> byte_ids_{};
  MergeTable merges_;
  // Pieces that merge into a single token, by their bytes: most of a text. What a cache of words
  // would learn, made once, so that threads need no lock.
  TokenTable whole_;
  // Added tokens in the two rounds in which they are matched.
  std::array<RawTokens, 2> raw_tokens_;
};

}  // namespace lathe::data
