#include "lathe/data/train_sentencepiece.h"

#include <map>

#include "lathe/data/learn_merges.h"
#include "lathe/data/learn_unigram.h"
#include "lathe/data/normalizers/normalizer.h"
#include "lathe/data/training_files.h"
#include "lathe/data/training_pieces.h"
#include "lathe/data/unicode_classes.h"
#include "lathe/data/utf8.h"

namespace lathe::data {
namespace {

constexpr const char* kSpaceMark = "\u2581";
constexpr std::size_t kMostMarkedBytes = 400;  // longer ones were never meant as words

// Counts what stands between white space, with the mark in front that a space leaves.
void count_marked_words(std::string_view text, WordCounts& counts) {
  std::string word = kSpaceMark;
  const std::size_t empty = word.size();
  const auto end_word = [&] {
    if (word.size() > empty && word.size() <= kMostMarkedBytes) counts.add(word);
    word.resize(empty);
  };
  const char* next = text.data();
  const char* const end = next + text.size();
  while (next != end) {
    const char32_t character = next_code_point(next, end);
    if (is_white_space(character)) {
      end_word();
    } else {
      append_utf8(character, word);
    }
  }
  end_word();
}

std::vector<std::string> with_byte_tokens(std::vector<std::string> special) {
  for (unsigned byte = 0; byte < 256; ++byte) special.push_back(fmt::format("<0x{:02X}>", byte));
  return special;
}

const std::vector<std::string> kTextTokens = {"<unk>", "<s>", "</s>"};
const std::vector<std::string> kMaskedTokens = {"<unk>", "<s>", "</s>", "<pad>", "<mask>"};

// A template with these before and behind a text, and between two; ids count from 0.
OrderedJson text_template(const std::vector<std::string>& special, bool has_end) {
  const auto token = [](const char* name, int type) {
    return OrderedJson{{"SpecialToken", {{"id", name}, {"type_id", type}}}};
  };
  const auto text = [](const char* name, int type) {
    return OrderedJson{{"Sequence", {{"id", name}, {"type_id", type}}}};
  };
  OrderedJson single = {token("<s>", 0), text("A", 0)};
  OrderedJson pair = single;
  if (has_end) {
    single.push_back(token("</s>", 0));
    pair.push_back(token("</s>", 0));
  }
  pair.push_back(text("B", 1));
  if (has_end) pair.push_back(token("</s>", 1));
  OrderedJson tokens = OrderedJson::object();
  for (const std::string name : {"<s>", "</s>"}) {
    const auto id = std::find(special.begin(), special.end(), name) - special.begin();
    tokens[name] = {{"id", name}, {"ids", {id}}, {"tokens", {name}}};
  }
  return {{"type", "TemplateProcessing"},
          {"single", single},
          {"pair", pair},
          {"special_tokens", tokens}};
}

OrderedJson replacement(const char* from, const char* to) {
  return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}

OrderedJson tokenizer_json(const std::vector<std::string>& special) {
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", added_tokens_json(special)}};
}

OrderedJson config_json() {
  return {{"tokenizer_class", "PreTrainedTokenizerFast"},
          {"bos_token", "<s>"},
          {"eos_token", "</s>"},
          {"unk_token", "<unk>"}};
}

}  // namespace

std::vector<TokenizerFile> train_bpe(std::span<const std::string_view> texts,
                                     const TokenizerTraining& training, ThreadPool& pool,
                                     const ShouldStop& should_stop) {
  const std::vector<CountedWord> words = count_words(texts, pool, should_stop, count_marked_words);
  TrainingPieces pieces(with_byte_tokens(kTextTokens), training.size);
  constexpr const char* kBase = "the special tokens, every byte and every character";
  pieces.add_base(kSpaceMark, kBase);
  std::map<std::string, std::int32_t> symbols;
  for (const std::string& character : alphabet_of(words))
    symbols[character] = pieces.add_base(character, kBase);
  std::vector<SymbolWord> cut;
  for (const CountedWord& word : words) {
    // Nothing merges with a character that becomes bytes.
    SymbolWord part{.symbols = {}, .count = word.count};
    for (const std::string& character : characters_of(word.word)) {
      if (const auto found = symbols.find(character); found != symbols.end()) {
        part.symbols.push_back(found->second);
        continue;
      }
      if (!part.symbols.empty()) cut.push_back(part);
      part.symbols.clear();
    }
    if (!part.symbols.empty()) cut.push_back(std::move(part));
  }
  OrderedJson merges = OrderedJson::array();
  for (const auto& [left, right] : learn_merges(
           std::move(cut), training.least_count,
           [&](const SymbolPair& pair) {
             return pieces.find_or_add(pieces[pair.first] + pieces[pair.second]);
           },
           should_stop))
    merges.push_back({pieces[left], pieces[right]});

  OrderedJson json = tokenizer_json(kTextTokens);
  json["normalizer"] = {
      {"type", "Sequence"},
      {"normalizers",
       {{{"type", "Prepend"}, {"prepend", kSpaceMark}}, replacement(" ", kSpaceMark)}}};
  json["pre_tokenizer"] = nullptr;
  json["post_processor"] = text_template(kTextTokens, false);
  json["decoder"] = {{"type", "Sequence"},
                     {"decoders",
                      {replacement(kSpaceMark, " "),
                       {{"type", "ByteFallback"}},
                       {{"type", "Fuse"}},
                       {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}}};
  json["model"] = {{"type", "BPE"},
                   {"dropout", nullptr},
                   {"unk_token", "<unk>"},
                   {"continuing_subword_prefix", nullptr},
                   {"end_of_word_suffix", nullptr},
                   {"fuse_unk", true},
                   {"byte_fallback", true},
                   {"ignore_merges", false},
                   {"vocab", vocabulary_json(pieces.tokens())},
                   {"merges", merges}};
  return {{"tokenizer.json", json_text(json)}, {"tokenizer_config.json", json_text(config_json())}};
}

std::vector<TokenizerFile> train_unigram(std::span<const std::string_view> texts,
                                         const TokenizerTraining& training, ThreadPool& pool,
                                         const ShouldStop& should_stop) {
  const nlohmann::json form = {{"type", "NFKC"}};
  const std::unique_ptr<const Normalizer> normalizer = make_normalizer(&form);
  const std::vector<CountedWord> words =
      count_words(texts, pool, should_stop, [&](std::string_view text, WordCounts& counts) {
        NormalizedText normalized{.text = as_utf8(text)};
        normalizer->normalize(normalized);
        count_marked_words(normalized.text, counts);
      });
  std::vector<std::string> alphabet = alphabet_of(words);
  if (alphabet.empty()) alphabet.emplace_back(kSpaceMark);
  const auto num_base = static_cast<std::int64_t>(kMaskedTokens.size() + alphabet.size());
  if (training.size < num_base)
    fail("size {}: there is no room for the special tokens and every character", training.size);
  // A word with a character that has no token is cut at it: it is learned from without.
  const std::vector<ScoredPiece> learned =
      learn_unigram(words, alphabet,
                    {.size = training.size - static_cast<std::int64_t>(kMaskedTokens.size()),
                     .least_count = training.least_count},
                    pool, should_stop);
  OrderedJson vocabulary = OrderedJson::array();
  for (const std::string& token : kMaskedTokens) vocabulary.push_back({token, 0.0});
  for (const auto& [piece, score] : learned) vocabulary.push_back({piece, score});

  const OrderedJson metaspace = {{"type", "Metaspace"},
                                 {"replacement", kSpaceMark},
                                 {"prepend_scheme", "always"},
                                 {"split", true}};
  OrderedJson json = tokenizer_json(kMaskedTokens);
  json["normalizer"] = {
      {"type", "Sequence"},
      {"normalizers",
       {{{"type", "NFKC"}},
        {{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", " "}}}}};
  json["pre_tokenizer"] = metaspace;
  json["post_processor"] = text_template(kMaskedTokens, true);
  json["decoder"] = metaspace;
  json["model"] = {
      {"type", "Unigram"}, {"unk_id", 0}, {"vocab", vocabulary}, {"byte_fallback", false}};
  OrderedJson config = config_json();
  config["pad_token"] = "<pad>";
  config["mask_token"] = "<mask>";
  return {{"tokenizer.json", json_text(json)}, {"tokenizer_config.json", json_text(config)}};
}

}  // namespace lathe::data
