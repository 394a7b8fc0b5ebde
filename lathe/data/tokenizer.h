#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/core/registry.h"

namespace lathe::data {

class Decoder;
class TokenizerSource;

/// Which part of a text that is too long is kept.
enum class Truncation : std::uint8_t {
  Head,      ///< the beginning
  HeadTail,  ///< a quarter from the beginning, the rest from the end
};
/// The truncation called `head` or `head+tail`.
Truncation parse_truncation(std::string_view name);
std::string_view name(Truncation truncation);

/// One of the files that a tokenizer is made of.
struct TokenizerFile {
  std::string name;
  std::string contents;
  bool operator==(const TokenizerFile&) const = default;
};

/// What is put around and between a pair of texts.
struct PairTokens {
  std::vector<std::int32_t> before, between, after;
  std::size_t num_between_first = 0;  ///< how many of those between belong to the first text
};

/// What a tokenizer knows besides how to cut: its tokens and which of them are special.
struct Vocabulary {
  std::vector<std::string> tokens;          ///< in the order of their ids
  std::string source;                       ///< what error messages call it
  std::vector<std::int32_t> before, after;  ///< what is put around every text
  /// Absent: `before`, `after` and once more `after`.
  std::optional<PairTokens> pair;
  std::vector<std::int32_t> special_ids;    ///< what a masked language model never masks
  std::vector<std::int32_t> unread_ids;     ///< what decoding leaves out, in rising order
  std::int32_t padding_id = 0;              ///< what fills a padded batch, where nothing reads it
  std::int32_t mask_id = -1;                ///< -1: there is none
  std::int32_t begin_id = -1, end_id = -1;  ///< of a text; -1: there is none
  /// What a directory must hold for this tokenizer to be loaded from it again.
  std::vector<TokenizerFile> files;
};

class Tokenizer;

/// A tokenizer that knows fewer tokens than the one it was made from.
struct SmallerTokenizer {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::vector<std::int32_t> kept;  ///< for each of its ids, the id of before; in rising order
};

/// Text to token ids. Immutable once made: any number of threads may encode with one tokenizer.
class Tokenizer {
 public:
  static constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

  virtual ~Tokenizer() = default;

  /// Appends the ids of a text with the special tokens around it, at most `max_length` in all.
  /// Bytes that are not UTF-8 count as U+FFFD.
  void encode(std::string_view text, std::vector<std::int32_t>& ids,
              std::int64_t max_length = kNoLimit, Truncation truncation = Truncation::Head) const;
  std::vector<std::int32_t> encode(std::string_view text) const;
  /// Appends the ids of a pair of texts, each followed by what follows a text. Where both are too
  /// long for `max_length`, the longer one gives way first, as Hugging Face's `longest_first` has
  /// it. Gives how many of the ids belong to the first text, special tokens included.
  std::int64_t encode_pair(std::string_view first, std::string_view second,
                           std::vector<std::int32_t>& ids, std::int64_t max_length = kNoLimit,
                           Truncation truncation = Truncation::Head) const;

  /// Appends the ids of a sentence that is cut into words already, at most `max_length` in all,
  /// and to `words` for each id the number of the word whose first piece it is, or -1. Words are
  /// cut as if a space stood before each.
  void encode_words(std::span<const std::string> sentence, std::vector<std::int32_t>& ids,
                    std::vector<std::int32_t>& words, std::int64_t max_length = kNoLimit) const;

  std::int32_t vocabulary_size() const {
    return static_cast<std::int32_t>(vocabulary_.tokens.size());
  }
  /// Throws a UserError when the vocabulary's size is not what the model's config says; that may be
  /// a few more rows, up to a multiple of 64.
  void check_size(std::int64_t expected) const;
  /// Throws a UserError when the special tokens and one more do not fit.
  void check_length(std::int64_t max_length) const;
  /// How a token is written in the vocabulary; refuses an id outside of it.
  const std::string& token(std::int32_t id) const;
  const std::vector<std::string>& tokens() const { return vocabulary_.tokens; }

  /// What fills a padded batch.
  std::int32_t padding_id() const { return vocabulary_.padding_id; }
  /// What stands for a token to be guessed, or -1: only masked language models need one.
  std::int32_t mask_id() const { return vocabulary_.mask_id; }
  /// What begins and ends a text by its configuration, or -1.
  std::int32_t begin_id() const { return vocabulary_.begin_id; }
  std::int32_t end_id() const { return vocabulary_.end_id; }
  /// The text that tokens stand for, without special ones unless told otherwise. Bytes that make no
  /// character become U+FFFD. Refuses an id outside of the vocabulary.
  std::string decode(std::span<const std::int32_t> ids, bool with_special = false) const;
  /// What stands for a word that it has no tokens for, or -1: it has tokens for all.
  virtual std::int32_t unknown_id() const { return -1; }
  /// The tokenizer that knows these tokens alone, and those that it cannot do without; words that
  /// they do not make are unknown. Fails where a kind cannot, or its files could not say what it
  /// does.
  virtual SmallerTokenizer with_tokens(const std::vector<std::int32_t>& ids) const;
  /// What a masked language model never masks.
  const std::vector<std::int32_t>& special_ids() const { return vocabulary_.special_ids; }
  /// How many tokens are put around a text.
  std::int64_t num_special() const {
    return static_cast<std::int64_t>(vocabulary_.before.size() + vocabulary_.after.size());
  }
  /// How many of them stand behind it.
  std::int64_t num_special_behind() const { return std::ssize(vocabulary_.after); }
  /// What a directory must hold for this tokenizer to be loaded from it again.
  const std::vector<TokenizerFile>& files() const { return vocabulary_.files; }

 protected:
  Tokenizer() = default;
  Tokenizer(const Tokenizer&) = default;
  Tokenizer(Tokenizer&&) = default;
  Tokenizer& operator=(const Tokenizer&) = default;
  Tokenizer& operator=(Tokenizer&&) = default;

  /// Appends the ids of a text alone; may stop once `enough` are in the vector.
  virtual void append_ids(std::string_view text, std::vector<std::int32_t>& ids,
                          std::size_t enough) const = 0;

  Vocabulary vocabulary_;
  // Shared because tokenizers are copied; nullptr: tokens are joined with spaces.
  std::shared_ptr<const Decoder> decoder_;
};

/// A kind of tokenizer: how it is recognized by its files, and how it is made of them.
struct TokenizerKind {
  std::string name;
  std::string summary;
  /// The names of the files it may be made of.
  std::vector<std::string> files;
  bool (*recognizes)(const TokenizerSource& source) = nullptr;
  std::shared_ptr<const Tokenizer> (*load)(const TokenizerSource& source) = nullptr;
};

/// Loads the tokenizer of a directory, or of one tokenizer.json. Shared, because a model, its data
/// and a stream of its tokens read it at the same time.
std::shared_ptr<const Tokenizer> load_tokenizer(const std::filesystem::path& path);

/// Every file that a tokenizer of any kind may be made of or described by.
std::vector<std::string> all_tokenizer_files();

}  // namespace lathe::data
