#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/data/bert_words.h"
#include "lathe/data/longest_pieces.h"
#include "lathe/data/tokenizer.h"

namespace lathe::data {

/// WordPiece: text to token ids, equal to the Hugging Face tokenizers library.
///
/// Special tokens written out in the text are matched first; the rest is normalized, cut at spaces
/// and punctuation, and each word is cut into the longest pieces of the vocabulary from left to
/// right. A text is put between [CLS] and [SEP].
class WordpieceTokenizer final : public Tokenizer {
 public:
  struct Options {
    NormalizerOptions normalizer;
    /// A word of more code points is one unknown token.
    std::int32_t max_characters_per_word = 100;
    std::string continuation_prefix = "##";
    std::string unknown_token = "[UNK]";
    std::string classification_token = "[CLS]";
    std::string separator_token = "[SEP]";
    std::string padding_token = "[PAD]";
    std::string mask_token = "[MASK]";
    /// Tokens matched in the raw text besides the special ones; they must be in the vocabulary.
    std::vector<std::string> added_tokens;
    /// What error messages call the vocabulary.
    std::string source = "vocab.txt";
  };

  /// Reads `tokenizer.json`, or else `vocab.txt`, and the flags in `tokenizer_config.json`.
  static WordpieceTokenizer load(const TokenizerSource& source);
  /// Makes a tokenizer of tokens in the order of their ids. A token given twice keeps its last id.
  static WordpieceTokenizer from_vocabulary(std::vector<std::string> tokens, Options options);
  static WordpieceTokenizer from_vocabulary(std::vector<std::string> tokens);

  std::int32_t unknown_id() const override { return unknown_id_; }
  std::int32_t classification_id() const { return vocabulary_.before[0]; }
  std::int32_t separator_id() const { return vocabulary_.after[0]; }
  const Options& options() const { return options_; }
  SmallerTokenizer with_tokens(const std::vector<std::int32_t>& ids) const override;

 private:
  class Encoder;
  struct AddedToken {
    std::string text;
    std::int32_t id;
  };

  WordpieceTokenizer() = default;
  void append_ids(std::string_view text, std::vector<std::int32_t>& ids,
                  std::size_t enough) const override;
  std::int32_t find_special(const std::string& token) const;
  void add_raw_token(const std::string& text);

  Options options_;
  LongestPieces pieces_;
  // Shared because it is large and never changes.
  std::shared_ptr<const BertCharacters> characters_;
  std::vector<AddedToken> added_tokens_;  // longest first
  std::int32_t unknown_id_ = -1;
};

}  // namespace lathe::data
