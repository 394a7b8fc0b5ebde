#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/data/character_table.h"
#include "lathe/data/token_table.h"

namespace lathe::data {

/// Which part of a text that is too long is kept.
enum class Truncation : std::uint8_t {
  Head,      ///< the beginning
  HeadTail,  ///< a quarter from the beginning, the rest from the end
};
/// The truncation called `head` or `head+tail`.
Truncation parse_truncation(std::string_view name);

/// BERT's tokenizer: text to token ids, equal to the Hugging Face tokenizers library.
///
/// Special tokens written out in the text are matched first; the rest is normalized, cut at spaces
/// and punctuation, and each word is cut into the longest pieces of the vocabulary from left to
/// right. Immutable once made: any number of threads may encode with one tokenizer.
class WordpieceTokenizer {
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
  static WordpieceTokenizer load(const std::filesystem::path& directory);
  /// Makes a tokenizer of tokens in the order of their ids. A token given twice keeps its last id.
  static WordpieceTokenizer from_vocabulary(std::vector<std::string> tokens, Options options);
  static WordpieceTokenizer from_vocabulary(std::vector<std::string> tokens);

  /// Appends the ids of "[CLS] text [SEP]". Bytes that are not UTF-8 count as U+FFFD.
  void encode(std::string_view text, std::vector<std::int32_t>& ids) const;
  /// The same, with at most `max_length` ids (at least 3) including [CLS] and [SEP].
  void encode(std::string_view text, std::vector<std::int32_t>& ids, std::int64_t max_length,
              Truncation truncation = Truncation::Head) const;
  std::vector<std::int32_t> encode(std::string_view text) const;

  std::int32_t vocabulary_size() const { return static_cast<std::int32_t>(tokens_.size()); }
  /// Throws a UserError when the vocabulary's size is not what the model's config says.
  void check_size(std::int64_t expected) const;
  /// The text of a token; refuses an id outside the vocabulary.
  const std::string& token(std::int32_t id) const;
  const std::vector<std::string>& tokens() const { return tokens_; }

  std::int32_t unknown_id() const { return unknown_id_; }
  std::int32_t classification_id() const { return classification_id_; }
  std::int32_t separator_id() const { return separator_id_; }
  std::int32_t padding_id() const { return padding_id_; }
  /// The id of [MASK], or -1: only pre-training needs one.
  std::int32_t mask_id() const { return mask_id_; }
  const Options& options() const { return options_; }

 private:
  class Encoder;
  struct AddedToken {
    std::string text;
    std::int32_t id;
  };

  WordpieceTokenizer() = default;
  std::int32_t find_special(const std::string& token) const;
  void add_raw_token(const std::string& text);

  Options options_;
  std::vector<std::string> tokens_;
  TokenTable words_;          // tokens that begin a word
  TokenTable continuations_;  // tokens that go on, without their prefix
  // Shared because it is large, never changes, and depends on the options alone.
  std::shared_ptr<const CharacterTable> characters_;
  std::vector<AddedToken> added_tokens_;  // longest first
  // What each byte means on the fast path, see wordpiece_tokenizer.cpp.
  std::array<std::uint8_t, 256> byte_class_{};
  std::array<char, 256> byte_result_{};
  std::int32_t unknown_id_ = -1;
  std::int32_t classification_id_ = -1;
  std::int32_t separator_id_ = -1;
  std::int32_t padding_id_ = -1;
  std::int32_t mask_id_ = -1;
};

}  // namespace lathe::data
