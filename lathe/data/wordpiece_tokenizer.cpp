#include "lathe/data/wordpiece_tokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "lathe/core/error.h"
#include "lathe/core/quote_text.h"
#include "lathe/data/decoders/decoder.h"

namespace lathe::data {
namespace {

// The flags as Hugging Face writes them, from what was understood and not from what was found.
std::string config_text(const WordpieceTokenizer::Options& options) {
  const nlohmann::ordered_json config = {
      {"tokenizer_class", "BertTokenizer"},
      {"do_lower_case", options.normalizer.lowercase},
      {"strip_accents", options.normalizer.strip_accents},
      {"tokenize_chinese_chars", options.normalizer.isolate_chinese_characters},
      {"unk_token", options.unknown_token},
      {"cls_token", options.classification_token},
      {"sep_token", options.separator_token},
      {"pad_token", options.padding_token},
      {"mask_token", options.mask_token}};
  return config.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace

// Looks up the words of a text as they come.
class WordpieceTokenizer::Encoder {
 public:
  /// Has enough once there are `enough` ids.
  Encoder(const WordpieceTokenizer& tokenizer, std::vector<std::int32_t>& ids, std::size_t enough)
      : tokenizer_(tokenizer), ids_(ids), enough_(enough) {}

  bool has_enough() const { return ids_.size() >= enough_; }

  std::size_t raw_length(const char* next, const char* end) const {
    const std::string_view rest(next, static_cast<std::size_t>(end - next));
    for (const AddedToken& added : tokenizer_.added_tokens_)
      if (rest.starts_with(added.text)) return added.text.size();
    return 0;
  }

  void raw(const char* next, std::size_t length) {
    const std::string_view text(next, length);
    for (const AddedToken& added : tokenizer_.added_tokens_)
      if (added.text == text) return ids_.push_back(added.id);
  }

  void word(const char* word, std::size_t length) {
    const std::int32_t id = tokenizer_.pieces_.words().find(word, length);
    // A whole word of the vocabulary that is too long for the limit is unknown all the same.
    if (id >= 0 && length <= static_cast<std::size_t>(tokenizer_.options_.max_characters_per_word))
      ids_.push_back(id);
    else
      cut_word(word, length);
  }

 private:
  void cut_word(const char* word, std::size_t word_length) {
    const std::size_t num_ids = ids_.size();
    const auto num_characters =
        std::count_if(word, word + word_length, [](char byte) { return (byte & 0xC0) != 0x80; });
    const bool known = num_characters <= tokenizer_.options_.max_characters_per_word &&
                       tokenizer_.pieces_.append_ids(word, word_length, ids_);
    if (known) return;
    ids_.resize(num_ids);
    ids_.push_back(tokenizer_.unknown_id_);
  }

  const WordpieceTokenizer& tokenizer_;
  std::vector<std::int32_t>& ids_;
  std::size_t enough_;
};

WordpieceTokenizer WordpieceTokenizer::from_vocabulary(std::vector<std::string> tokens) {
  return from_vocabulary(std::move(tokens), Options{});
}

WordpieceTokenizer WordpieceTokenizer::from_vocabulary(std::vector<std::string> tokens,
                                                       Options options) {
  WordpieceTokenizer tokenizer;
  tokenizer.options_ = std::move(options);
  const Options& chosen = tokenizer.options_;
  if (tokens.empty()) fail("{}: has no tokens", chosen.source);
  if (tokens.size() > std::size_t{1} << 24)
    fail("{}: has {} tokens, more than the {} allowed", chosen.source, tokens.size(), 1 << 24);
  if (chosen.max_characters_per_word < 1 || chosen.max_characters_per_word > kMostCharactersPerWord)
    fail("{}: max_input_chars_per_word is {}, expected 1 to {}", chosen.source,
         chosen.max_characters_per_word, kMostCharactersPerWord);
  if (chosen.continuation_prefix.empty())
    fail("{}: continuing_subword_prefix is empty", chosen.source);

  Vocabulary& vocabulary = tokenizer.vocabulary_;
  vocabulary.tokens = std::move(tokens);
  vocabulary.source = chosen.source;
  tokenizer.pieces_ = LongestPieces(vocabulary.tokens, chosen.continuation_prefix);
  tokenizer.unknown_id_ = tokenizer.find_special(chosen.unknown_token);
  vocabulary.before = {tokenizer.find_special(chosen.classification_token)};
  vocabulary.after = {tokenizer.find_special(chosen.separator_token)};
  vocabulary.padding_id = tokenizer.find_special(chosen.padding_token);
  vocabulary.special_ids = {vocabulary.before[0], vocabulary.after[0], vocabulary.padding_id};
  const auto mask =
      std::find(vocabulary.tokens.begin(), vocabulary.tokens.end(), chosen.mask_token);
  if (mask != vocabulary.tokens.end())
    vocabulary.mask_id = tokenizer.find_special(chosen.mask_token);
  vocabulary.files = {{"vocab.txt", fmt::format("{}\n", fmt::join(vocabulary.tokens, "\n"))},
                      {"tokenizer_config.json", config_text(chosen)}};

  const nlohmann::json decoder = {{"type", "WordPiece"}, {"prefix", chosen.continuation_prefix}};
  tokenizer.decoder_ = make_decoder(&decoder);

  auto characters = std::make_shared<BertCharacters>(chosen.normalizer);
  for (const std::string& special :
       {chosen.unknown_token, chosen.classification_token, chosen.separator_token,
        chosen.padding_token, chosen.mask_token})
    if (special != chosen.mask_token || vocabulary.mask_id >= 0) tokenizer.add_raw_token(special);
  for (const std::string& added : chosen.added_tokens) tokenizer.add_raw_token(added);
  std::stable_sort(
      tokenizer.added_tokens_.begin(), tokenizer.added_tokens_.end(),
      [](const AddedToken& a, const AddedToken& b) { return a.text.size() > b.text.size(); });
  for (const AddedToken& added : tokenizer.added_tokens_)
    characters->expect_raw(static_cast<unsigned char>(added.text[0]));
  tokenizer.characters_ = std::move(characters);
  for (const AddedToken& added : tokenizer.added_tokens_) vocabulary.unread_ids.push_back(added.id);
  std::sort(vocabulary.unread_ids.begin(), vocabulary.unread_ids.end());
  return tokenizer;
}

std::int32_t WordpieceTokenizer::find_special(const std::string& token) const {
  std::string padded = token;
  padded.resize(token.size() + TokenTable::kPadding);
  const std::int32_t id = pieces_.words().find(padded.data(), token.size());
  if (id == TokenTable::kAbsent)
    fail("{}: has no token {}, which the tokenizer needs", options_.source, quote_text(token));
  return id;
}

void WordpieceTokenizer::add_raw_token(const std::string& text) {
  if (text.empty()) fail("{}: an added token is empty", options_.source);
  added_tokens_.push_back({text, find_special(text)});
}

void WordpieceTokenizer::append_ids(std::string_view text, std::vector<std::int32_t>& ids,
                                    std::size_t enough) const {
  Encoder encoder(*this, ids, enough);
  BertWords<Encoder>(*characters_, encoder).read(text);
}

SmallerTokenizer WordpieceTokenizer::with_tokens(const std::vector<std::int32_t>& ids) const {
  // vocab.txt has no place for these.
  const Options defaults;
  if (options_.continuation_prefix != defaults.continuation_prefix ||
      options_.max_characters_per_word != defaults.max_characters_per_word)
    fail("{}: its tokens cannot be made fewer: it has rules of its own for pieces of words",
         options_.source);
  std::set<std::int32_t> kept(vocabulary_.special_ids.begin(), vocabulary_.special_ids.end());
  kept.insert(unknown_id_);
  if (mask_id() >= 0) kept.insert(mask_id());
  for (const AddedToken& added : added_tokens_)
    if (!kept.contains(added.id))
      fail("{}: its tokens cannot be made fewer: {} is matched in the raw text", options_.source,
           quote_text(added.text));
  for (const std::int32_t id : ids) {
    token(id);  // refuses what is outside
    kept.insert(id);
  }
  SmallerTokenizer result{.tokenizer = {}, .kept = {kept.begin(), kept.end()}};
  std::vector<std::string> tokens;
  for (const std::int32_t id : result.kept) tokens.push_back(token(id));
  Options options = options_;
  options.added_tokens.clear();
  options.source = "vocab.txt";
  result.tokenizer = std::make_shared<const WordpieceTokenizer>(
      from_vocabulary(std::move(tokens), std::move(options)));
  return result;
}

}  // namespace lathe::data
