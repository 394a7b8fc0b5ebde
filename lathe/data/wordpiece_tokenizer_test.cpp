#include "lathe/data/wordpiece_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/core/json_reader.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/data/testing/temporary_directory.h"
#include "lathe/data/text_file.h"
#include "lathe/data/tokenizer_source.h"

namespace lathe::data {
namespace {

using testing::ElementsAre;

// Ids 0 to 4 are the special tokens in BERT's order.
const std::vector<std::string> kVocabulary = {
    "[PAD]",  "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "film", "##s",    "un",   "##watch",
    "##able", "!",     ",",     "cafe",  "\u4E2D", "[",   "]",    "\u00DF", "Film", "caf\u00E9"};

std::string tokens_of(const WordpieceTokenizer& tokenizer, std::string_view text) {
  std::string joined;
  for (const std::int32_t id : tokenizer.encode(text)) {
    if (!joined.empty()) joined += ' ';
    joined += tokenizer.token(id);
  }
  return joined;
}

std::string tokens_of(std::string_view text) {
  return tokens_of(WordpieceTokenizer::from_vocabulary(kVocabulary), text);
}

TEST(WordpieceTokenizer, CutsWordsIntoTheLongestPieces) {
  EXPECT_EQ(tokens_of("The films, unwatchable!"), "[CLS] the film ##s , un ##watch ##able ! [SEP]");
  EXPECT_EQ(tokens_of(""), "[CLS] [SEP]");
  EXPECT_EQ(tokens_of(" \t\r\n "), "[CLS] [SEP]");
}

TEST(WordpieceTokenizer, SaysWhichIdBeginsWhichWord) {
  const WordpieceTokenizer tokenizer = WordpieceTokenizer::from_vocabulary(kVocabulary);
  const std::vector<std::string> sentence{"The", "films", "\x01", "unwatchable", "!"};
  std::vector<std::int32_t> ids, words;
  tokenizer.encode_words(sentence, ids, words);
  EXPECT_THAT(ids, ElementsAre(2, 5, 6, 7, 8, 9, 10, 11, 3));
  EXPECT_THAT(words, ElementsAre(-1, 0, 1, -1, 3, -1, -1, 4, -1));
  // Cut within a word: what is left of it keeps its label.
  ids.clear();
  words.clear();
  tokenizer.encode_words(sentence, ids, words, 6);
  EXPECT_THAT(ids, ElementsAre(2, 5, 6, 7, 8, 3));
  EXPECT_THAT(words, ElementsAre(-1, 0, 1, -1, 3, -1));
}

TEST(WordpieceTokenizer, CanKnowFewerTokens) {
  const WordpieceTokenizer tokenizer = WordpieceTokenizer::from_vocabulary(kVocabulary);
  const SmallerTokenizer smaller = tokenizer.with_tokens({6, 5, 10, 8});
  EXPECT_THAT(smaller.kept, ElementsAre(0, 1, 2, 3, 4, 5, 6, 8, 10));
  EXPECT_THAT(smaller.tokenizer->encode("The films unable"), ElementsAre(2, 5, 1, 7, 8, 3));
  EXPECT_EQ(
      smaller.tokenizer->files()[0],
      (TokenizerFile{"vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nfilm\nun\n##able\n"}));
}

TEST(WordpieceTokenizer, KeepsAllTokensWhereItsFilesCouldNotSayOtherwise) {
  const auto refusal = [](const WordpieceTokenizer::Options& options) {
    const auto tokenizer = WordpieceTokenizer::from_vocabulary(kVocabulary, options);
    return error_text([&] { tokenizer.with_tokens({5}); });
  };
  WordpieceTokenizer::Options added, short_words;
  added.added_tokens = {"film"};
  short_words.max_characters_per_word = 20;
  EXPECT_EQ(refusal({}), "no error");
  EXPECT_EQ(refusal(added),
            "vocab.txt: its tokens cannot be made fewer: \"film\" is matched in the raw text");
  EXPECT_EQ(
      refusal(short_words),
      "vocab.txt: its tokens cannot be made fewer: it has rules of its own for pieces of words");
}

TEST(WordpieceTokenizer, MakesAWordUnknownWhenAnyPartIs) {
  EXPECT_EQ(tokens_of("the filmx"), "[CLS] the [UNK] [SEP]");
  EXPECT_EQ(tokens_of("able"), "[CLS] [UNK] [SEP]") << "a continuation does not begin a word";
}

TEST(WordpieceTokenizer, MatchesSpecialTokensInTheRawText) {
  EXPECT_EQ(tokens_of("the[SEP]film [MASK]s"), "[CLS] the [SEP] film [MASK] [UNK] [SEP]");
  EXPECT_EQ(tokens_of("[sep]"), "[CLS] [ [UNK] ] [SEP]") << "case counts";
  EXPECT_EQ(tokens_of("[SEP"), "[CLS] [ [UNK] [SEP]");
}

TEST(WordpieceTokenizer, NormalizesBeforeItLooksUp) {
  EXPECT_EQ(tokens_of("CAFÉ cafe\u0301"), "[CLS] cafe cafe [SEP]");
  EXPECT_EQ(tokens_of(std::string_view("fi\u00ADlm fi\0lm", 12)), "[CLS] film film [SEP]");
  EXPECT_EQ(tokens_of("the\u4E2Dfilm"), "[CLS] the \u4E2D film [SEP]");
  EXPECT_EQ(tokens_of("\u1E9E"), "[CLS] \u00DF [SEP]");
}

TEST(WordpieceTokenizer, KeepsCaseAndAccentsWhenTold) {
  WordpieceTokenizer::Options options;
  options.normalizer = {.strip_accents = false, .lowercase = false};
  const auto cased = WordpieceTokenizer::from_vocabulary(kVocabulary, options);
  EXPECT_EQ(tokens_of(cased, "Film film café CAFE"), "[CLS] Film film caf\u00E9 [UNK] [SEP]");
}

TEST(WordpieceTokenizer, ReadsAnyBytes) {
  EXPECT_EQ(tokens_of("fi\xFFlm \xE2\x82"), "[CLS] film [SEP]") << "broken UTF-8 is removed";
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
  for (int i = 0; i < 4; ++i) all += all;
  EXPECT_GT(WordpieceTokenizer::from_vocabulary(kVocabulary).encode(all).size(), 2u);
}

TEST(WordpieceTokenizer, MakesAWordOfMoreThanAHundredCharactersUnknown) {
  WordpieceTokenizer::Options options;
  const auto tokenizer = WordpieceTokenizer::from_vocabulary(
      {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "x", "##x", "\u00DF", "##\u00DF"}, options);
  std::string sharp_s;
  for (int i = 0; i < 100; ++i) sharp_s += "\u00DF";
  EXPECT_EQ(tokenizer.encode(std::string(100, 'x')).size(), 102u);
  EXPECT_THAT(tokenizer.encode(std::string(101, 'x')), ElementsAre(2, 1, 3));
  EXPECT_EQ(tokenizer.encode(sharp_s).size(), 102u) << "characters, not bytes";
  EXPECT_THAT(tokenizer.encode(std::string(100'000, 'x')), ElementsAre(2, 1, 3));
}

TEST(WordpieceTokenizer, OrdersKeptMarksAsDecompositionDoes) {
  // U+302E has combining class 224 and U+1B44 class 9, so decomposition swaps them; U+034F is of
  // class 0 and keeps them apart although it is itself removed.
  const auto tokenizer = WordpieceTokenizer::from_vocabulary(
      {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "a\U00001B44\u302E", "a\u302E\u1B44"});
  EXPECT_THAT(tokenizer.encode("a\u302E\u1B44"), ElementsAre(2, 4, 3));
  EXPECT_THAT(tokenizer.encode("a\u302E\u034F\u1B44"), ElementsAre(2, 5, 3));
}

TEST(WordpieceTokenizer, TruncatesToTheHeadOrToHeadAndTail) {
  const auto tokenizer = WordpieceTokenizer::from_vocabulary(
      {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b", "c", "d", "e", "f"});
  std::vector<std::int32_t> ids = {99};  // what is there already stays
  tokenizer.encode("a b c d e f", ids, 6, Truncation::Head);
  EXPECT_THAT(ids, ElementsAre(99, 2, 4, 5, 6, 7, 3));
  ids.clear();
  tokenizer.encode("a b c d e f", ids, 6, Truncation::HeadTail);
  EXPECT_THAT(ids, ElementsAre(2, 4, 7, 8, 9, 3));
  ids.clear();
  tokenizer.encode("a b c d e f", ids, 8, Truncation::HeadTail);
  EXPECT_THAT(ids, ElementsAre(2, 4, 5, 6, 7, 8, 9, 3));
  EXPECT_EQ(error_of([&] { tokenizer.encode("a", ids, 2); }),
            "max_length is 2, expected at least 3: [CLS], a token, [SEP]");
}

TEST(WordpieceTokenizer, PutsPairsOneAfterTheOther) {
  const auto tokenizer = WordpieceTokenizer::from_vocabulary(
      {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b", "c", "d", "e", "f"});
  std::vector<std::int32_t> ids;
  EXPECT_EQ(tokenizer.encode_pair("a b", "c", ids), 4);
  EXPECT_THAT(ids, ElementsAre(2, 4, 5, 3, 6, 3));
  // The longer one gives way first; then both.
  ids.clear();
  EXPECT_EQ(tokenizer.encode_pair("a b c d", "e", ids, 7), 5);
  EXPECT_THAT(ids, ElementsAre(2, 4, 5, 6, 3, 8, 3));
  ids.clear();
  EXPECT_EQ(tokenizer.encode_pair("a b c d", "d e f", ids, 8), 5);
  EXPECT_THAT(ids, ElementsAre(2, 4, 5, 6, 3, 7, 8, 3));
  EXPECT_EQ(error_of([&] { tokenizer.encode_pair("a", "b", ids, 4); }),
            "max_length is 4, expected at least 5 for a pair of texts");
}

// One row in a hundred may be there for a round number.
TEST(WordpieceTokenizer, FitsAModelWithAHundredthMoreRows) {
  std::vector<std::string> vocabulary = kVocabulary;
  while (vocabulary.size() < 399) vocabulary.push_back(fmt::format("w{}", vocabulary.size()));
  const auto tokenizer = WordpieceTokenizer::from_vocabulary(vocabulary);
  tokenizer.check_size(403);
  EXPECT_EQ(error_of([&] { tokenizer.check_size(404); }),
            "vocab.txt: has 399 tokens, but config.json says vocab_size is 404");
}

TEST(WordpieceTokenizer, KnowsItsSpecialTokensAndItsSize) {
  const auto tokenizer = WordpieceTokenizer::from_vocabulary(kVocabulary);
  EXPECT_EQ(tokenizer.padding_id(), 0);
  EXPECT_EQ(tokenizer.unknown_id(), 1);
  EXPECT_EQ(tokenizer.mask_id(), 4);
  EXPECT_EQ(error_of([&] { tokenizer.check_size(30522); }),
            "vocab.txt: has 20 tokens, but config.json says vocab_size is 30522");
  EXPECT_EQ(error_of([&] { tokenizer.token(20); }),
            "token id 20 is outside the vocabulary of 20 tokens");
  EXPECT_EQ(error_of([] {
              WordpieceTokenizer::from_vocabulary({"[UNK]", "[CLS]"});
            }),
            "vocab.txt: has no token \"[SEP]\", which the tokenizer needs");
  EXPECT_EQ(error_of([] { WordpieceTokenizer::from_vocabulary({}); }), "vocab.txt: has no tokens");
}

TEST(WordpieceTokenizer, EqualsTheHuggingFaceTokenizerOnItsGoldenTexts) {
  const std::filesystem::path shared = LATHE_SHARED_DIR;
  if (!std::filesystem::exists(shared / "golden/bert_tokens.json"))
    GTEST_SKIP() << "needs " << shared / "golden/bert_tokens.json";
  const auto tokenizer = WordpieceTokenizer::load(TokenizerSource(shared / "data/bert-tiny"));
  tokenizer.check_size(30522);
  const auto golden = parse_json(read_text_file(shared / "golden/bert_tokens.json"));
  for (const auto& row : golden["tricky"])
    EXPECT_EQ(tokenizer.encode(row["text"].get<std::string>()),
              row["ids"].get<std::vector<std::int32_t>>())
        << row["text"];

  const std::string test = read_text_file(shared / "data/imdb/test.tsv.zst");
  std::vector<std::string_view> lines;
  for (std::size_t start = 0; start < test.size();) {
    const std::size_t end = test.find('\n', start);
    lines.emplace_back(test.data() + start, end - start);
    start = end + 1;
  }
  for (const auto& row : golden["test_rows"]) {
    const std::string_view line = lines.at(row["row"].get<std::size_t>());
    EXPECT_EQ(tokenizer.encode(line.substr(line.find('\t') + 1)),
              row["ids"].get<std::vector<std::int32_t>>())
        << "row " << row["row"];
  }
}

}  // namespace
}  // namespace lathe::data
