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
#include "lathe/data/utf8.h"
#include "lathe/data/word_counts.h"

namespace lathe::data {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::size_t kTextsPerTask = 64;
// Hugging Face's limit: a text of many scripts would otherwise fill the vocabulary with characters.
constexpr std::size_t kMostCharacters = 1000;
// Longer words are unknown to the tokenizer anyhow, or were never meant as words.
constexpr std::size_t kMostWordBytes = 400;
constexpr const char* kPrefix = "##";
constexpr const char* kEndOfText = "<|endoftext|>";
const std::vector<std::string> kBertTokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};

// Counts what `count_in` finds in each text, on all threads.
template <typename CountIn>
std::vector<CountedWord> count_words(std::span<const std::string_view> texts, ThreadPool& pool,
                                     const ShouldStop& should_stop, const CountIn& count_in) {
  std::vector<WordCounts> counts(static_cast<std::size_t>(pool.num_threads()));
  const std::size_t num_tasks = (texts.size() + kTextsPerTask - 1) / kTextsPerTask;
  pool.run(static_cast<std::int64_t>(num_tasks), [&](std::int64_t task, int thread) {
    if (should_stop && should_stop()) throw Interrupted();
    const std::size_t begin = static_cast<std::size_t>(task) * kTextsPerTask;
    for (const std::string_view text :
         texts.subspan(begin, std::min(kTextsPerTask, texts.size() - begin)))
      count_in(text, counts[static_cast<std::size_t>(thread)]);
  });
  for (std::size_t i = 1; i < counts.size(); ++i) counts[0].add(counts[i]);
  return counts[0].sorted();
}

struct CountingSink {
  WordCounts& counts;
  void word(const char* bytes, std::size_t length) {
    if (length <= kMostWordBytes) counts.add({bytes, length});
  }
  static std::size_t raw_length(const char*, const char*) { return 0; }
  static void raw(const char*, std::size_t) {}
  static bool has_enough() { return false; }
};

// A vocabulary under construction: the special tokens, then what each symbol of the merges is
// written as.
class Pieces {
 public:
  Pieces(std::vector<std::string> special, std::int64_t size)
      : tokens_(std::move(special)), size_(size) {
    for (const std::string& token : tokens_) ids_.emplace(token, ids_.size());
  }

  /// The symbol that is written so; a new one where there is room.
  std::optional<std::int32_t> find_or_add(const std::string& text) {
    if (const auto found = ids_.find(text); found != ids_.end()) return found->second;
    if (static_cast<std::int64_t>(tokens_.size()) == size_) return std::nullopt;
    ids_.emplace(text, static_cast<std::int32_t>(tokens_.size()));
    tokens_.push_back(text);
    return static_cast<std::int32_t>(tokens_.size()) - 1;
  }
  /// Adds one of the pieces that a vocabulary must have; `what` they are, for messages.
  std::int32_t add_base(const std::string& text, const char* what) {
    const std::optional<std::int32_t> symbol = find_or_add(text);
    if (!symbol) fail("size {}: there is no room for {}", size_, what);
    return *symbol;
  }
  const std::string& operator[](std::int32_t symbol) const {
    return tokens_[static_cast<std::size_t>(symbol)];
  }
  const std::vector<std::string>& tokens() const { return tokens_; }

 private:
  std::vector<std::string> tokens_;
  std::unordered_map<std::string, std::int32_t> ids_;
  std::int64_t size_;
};

std::vector<std::string> characters_of(const std::string& word) {
  std::vector<std::string> characters;
  for (const char *next = word.data(), *end = next + word.size(); next != end;) {
    const char* const start = next;
    next_code_point(next, end);
    characters.emplace_back(start, next);
  }
  return characters;
}

// The characters that get a token, in order: UTF-8 sorts as code points do.
std::vector<std::string> alphabet_of(const std::vector<CountedWord>& words) {
  std::map<std::string, std::int64_t> counts;
  for (const CountedWord& word : words)
    for (const std::string& character : characters_of(word.word)) counts[character] += word.count;
  std::vector<std::pair<std::string, std::int64_t>> all(counts.begin(), counts.end());
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  all.resize(std::min(all.size(), kMostCharacters));
  std::vector<std::string> kept;
  for (const auto& [character, count] : all) kept.push_back(character);
  std::sort(kept.begin(), kept.end());
  return kept;
}

std::string dump(const OrderedJson& json) {
  return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

OrderedJson vocabulary_json(const std::vector<std::string>& tokens) {
  OrderedJson vocabulary = OrderedJson::object();
  for (std::size_t id = 0; id < tokens.size(); ++id) vocabulary[tokens[id]] = id;
  return vocabulary;
}

OrderedJson added_tokens(const std::vector<std::string>& special) {
  OrderedJson added = OrderedJson::array();
  for (std::size_t id = 0; id < special.size(); ++id)
    added.push_back({{"id", id},
                     {"content", special[id]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  return added;
}

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
      {"added_tokens", added_tokens(kBertTokens)},
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
  return {{"tokenizer.json", dump(json)},
          {"vocab.txt", lines},
          {"tokenizer_config.json", dump(config)}};
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
  Pieces pieces(kBertTokens, training.size);
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
                            {"added_tokens", added_tokens({kEndOfText})},
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
  return {{"tokenizer.json", dump(json)},
          {"vocab.json", dump(vocabulary_json(tokens))},
          {"merges.txt", lines},
          {"tokenizer_config.json", dump(config)}};
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
  Pieces pieces({kEndOfText}, training.size);
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
  throw unknown_name("kind of tokenizer", training.kind, {"byte-level-bpe", "wordpiece"});
}

}  // namespace lathe::data
