#include "lathe/data/train_tokenizer.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

#include "lathe/core/error.h"
#include "lathe/data/bert_words.h"
#include "lathe/data/byte_alphabet.h"
#include "lathe/data/gpt2_split.h"
#include "lathe/data/learn_merges.h"
#include "lathe/data/train_sentencepiece.h"
#include "lathe/data/training_files.h"
#include "lathe/data/training_pieces.h"
#include "lathe/data/utf8.h"
#include "lathe/data/word_counts.h"

namespace lathe::data {
namespace {

// Longer words are unknown to the tokenizer anyhow, or were never meant as words.
constexpr std::size_t kMostWordBytes = 400;
constexpr const char* kPrefix = "##";
constexpr const char* kEndOfText = "<|endoftext|>";
const std::vector<std::string> kBertTokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};

struct CountingSink {
  WordCounts& counts;
  void word(const char* bytes, std::size_t length) {
    if (length <= kMostWordBytes) counts.add({bytes, length});
  }
  static std::size_t raw_length(const char*, const char*) { return 0; }
  static void raw(const char*, std::size_t) {}
  static bool has_enough() { return false; }
};

OrderedJson sequence_piece(const char* id, int type) {
  return {{"Sequence", {{"id", id}, {"type_id", type}}}};
}

OrderedJson special_piece(const char* token, int type) {
  return {{"SpecialToken", {{"id", token}, {"type_id", type}}}};
}

OrderedJson bert_template() {
  const auto special = [](const char* token, int id) {
    return OrderedJson{{"id", token}, {"ids", {id}}, {"tokens", {token}}};
  };
  const OrderedJson single = {special_piece("[CLS]", 0), sequence_piece("A", 0),
                              special_piece("[SEP]", 0)};
  const OrderedJson pair = {special_piece("[CLS]", 0), sequence_piece("A", 0),
                            special_piece("[SEP]", 0), sequence_piece("B", 1),
                            special_piece("[SEP]", 1)};
  return {{"type", "TemplateProcessing"},
          {"single", single},
          {"pair", pair},
          {"special_tokens", {{"[CLS]", special("[CLS]", 2)}, {"[SEP]", special("[SEP]", 3)}}}};
}

std::vector<TokenizerFile> wordpiece_files(const std::vector<std::string>& tokens, bool lowercase) {
  std::string lines;
  for (const std::string& token : tokens) lines += token + "\n";
  const OrderedJson json = {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", added_tokens_json(kBertTokens)},
      {"normalizer",
       {{"type", "BertNormalizer"},
        {"clean_text", true},
        {"handle_chinese_chars", true},
        {"strip_accents", nullptr},
        {"lowercase", lowercase}}},
      {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
      {"post_processor", bert_template()},
      {"decoder", {{"type", "WordPiece"}, {"prefix", kPrefix}, {"cleanup", true}}},
      {"model",
       {{"type", "WordPiece"},
        {"unk_token", "[UNK]"},
        {"continuing_subword_prefix", kPrefix},
        {"max_input_chars_per_word", 100},
        {"vocab", vocabulary_json(tokens)}}}};
  const OrderedJson config = {{"tokenizer_class", "BertTokenizer"},
                              {"do_lower_case", lowercase},
                              {"tokenize_chinese_chars", true},
                              {"unk_token", "[UNK]"},
                              {"cls_token", "[CLS]"},
                              {"sep_token", "[SEP]"},
                              {"pad_token", "[PAD]"},
                              {"mask_token", "[MASK]"}};
  return {{"tokenizer.json", json_text(json)},
          {"vocab.txt", lines},
          {"tokenizer_config.json", json_text(config)}};
}

std::vector<TokenizerFile> train_wordpiece(std::span<const std::string_view> texts,
                                           const TokenizerTraining& training, ThreadPool& pool,
                                           const ShouldStop& should_stop) {
  NormalizerOptions normalizer;
  normalizer.lowercase = normalizer.strip_accents = training.lowercase;
  const BertCharacters characters(normalizer);
  const std::vector<CountedWord> words =
      count_words(texts, pool, should_stop, [&](std::string_view text, WordCounts& counts) {
        CountingSink sink{counts};
        BertWords<CountingSink>(characters, sink).read(text);
      });

  // A character that begins a word and the same one further on are two tokens.
  TrainingPieces pieces(kBertTokens, training.size);
  std::map<std::string, std::int32_t> first, later;
  constexpr const char* kBase = "the special tokens and every character twice";
  const std::vector<std::string> alphabet = alphabet_of(words);
  for (const std::string& character : alphabet)
    first[character] = pieces.add_base(character, kBase);
  for (const std::string& character : alphabet)
    later[character] = pieces.add_base(kPrefix + character, kBase);

  std::vector<SymbolWord> cut;
  for (const CountedWord& word : words) {
    SymbolWord spelled{.symbols = {}, .count = word.count};
    bool is_known = true;
    for (const std::string& character : characters_of(word.word)) {
      const auto& table = spelled.symbols.empty() ? first : later;
      const auto found = table.find(character);
      is_known = is_known && found != table.end();
      if (is_known) spelled.symbols.push_back(found->second);
    }
    // A word with a character that has no token will be unknown, whatever its pieces are.
    if (is_known) cut.push_back(std::move(spelled));
  }
  learn_merges(
      std::move(cut), training.least_count,
      [&](const SymbolPair& pair) {
        const std::size_t prefix = std::string_view(kPrefix).size();
        return pieces.find_or_add(pieces[pair.first] + pieces[pair.second].substr(prefix));
      },
      should_stop);
  return wordpiece_files(pieces.tokens(), training.lowercase);
}

std::vector<TokenizerFile> bpe_files(const std::vector<std::string>& tokens,
                                     const std::vector<std::string>& merges) {
  const OrderedJson byte_level = {{"type", "ByteLevel"},
                                  {"add_prefix_space", false},
                                  {"trim_offsets", true},
                                  {"use_regex", true}};
  const OrderedJson json = {{"version", "1.0"},
                            {"truncation", nullptr},
                            {"padding", nullptr},
                            {"added_tokens", added_tokens_json({kEndOfText})},
                            {"normalizer", nullptr},
                            {"pre_tokenizer", byte_level},
                            {"post_processor", byte_level},
                            {"decoder", byte_level},
                            {"model",
                             {{"type", "BPE"},
                              {"dropout", nullptr},
                              {"unk_token", nullptr},
                              {"continuing_subword_prefix", nullptr},
                              {"end_of_word_suffix", nullptr},
                              {"fuse_unk", false},
                              {"byte_fallback", false},
                              {"vocab", vocabulary_json(tokens)},
                              {"merges", merges}}}};
  const OrderedJson config = {{"tokenizer_class", "GPT2Tokenizer"},
                              {"add_prefix_space", false},
                              {"bos_token", kEndOfText},
                              {"eos_token", kEndOfText},
                              {"unk_token", kEndOfText}};
  std::string lines = "#version: 0.2\n";
  for (const std::string& merge : merges) lines += merge + "\n";
  return {{"tokenizer.json", json_text(json)},
          {"vocab.json", json_text(vocabulary_json(tokens))},
          {"merges.txt", lines},
          {"tokenizer_config.json", json_text(config)}};
}

void count_pieces(std::string_view text, WordCounts& counts) {
  const std::string sound = is_utf8(text) ? std::string() : as_utf8(text);
  if (!sound.empty()) text = sound;
  while (!text.empty()) {
    const std::size_t length = gpt2_piece_length(text);
    if (length <= kMostWordBytes) counts.add(text.substr(0, length));
    text.remove_prefix(length);
  }
}

std::vector<TokenizerFile> train_byte_level_bpe(std::span<const std::string_view> texts,
                                                const TokenizerTraining& training, ThreadPool& pool,
                                                const ShouldStop& should_stop) {
  const std::vector<CountedWord> words = count_words(texts, pool, should_stop, count_pieces);
  // Every byte has a token, in the order of the characters they are written as.
  std::map<char32_t, unsigned> alphabet;
  for (unsigned byte = 0; byte < 256; ++byte)
    alphabet[character_of_byte(static_cast<std::uint8_t>(byte))] = byte;
  TrainingPieces pieces({kEndOfText}, training.size);
  std::array<std::int32_t, 256> symbol_of{};
  for (const auto& [character, byte] : alphabet) {
    const char one = static_cast<char>(byte);
    symbol_of[byte] =
        pieces.add_base(write_in_byte_alphabet({&one, 1}), "the end of a text and every byte");
  }
  std::vector<SymbolWord> cut;
  for (const CountedWord& word : words) {
    SymbolWord spelled{.symbols = {}, .count = word.count};
    for (const char byte : word.word)
      spelled.symbols.push_back(symbol_of[static_cast<unsigned char>(byte)]);
    cut.push_back(std::move(spelled));
  }
  std::vector<std::string> merges;
  for (const auto& [left, right] : learn_merges(
           std::move(cut), training.least_count,
           [&](const SymbolPair& pair) {
             return pieces.find_or_add(pieces[pair.first] + pieces[pair.second]);
           },
           should_stop))
    merges.push_back(pieces[left] + " " + pieces[right]);
  return bpe_files(pieces.tokens(), merges);
}

}  // namespace

std::vector<TokenizerFile> train_tokenizer(std::span<const std::string_view> texts,
                                           const TokenizerTraining& training, ThreadPool& pool,
                                           const ShouldStop& should_stop) {
  if (training.least_count < 1) fail("least-count {}: expected 1 or more", training.least_count);
  if (training.kind == "wordpiece") return train_wordpiece(texts, training, pool, should_stop);
  if (training.kind == "byte-level-bpe")
    return train_byte_level_bpe(texts, training, pool, should_stop);
  if (training.kind == "bpe") return train_bpe(texts, training, pool, should_stop);
  if (training.kind == "unigram") return train_unigram(texts, training, pool, should_stop);
  throw unknown_name("kind of tokenizer", training.kind,
                     {"bpe", "byte-level-bpe", "unigram", "wordpiece"});
}

}  // namespace lathe::data
