#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/data/testing/temporary_directory.h"
#include "lathe/data/text_file.h"
#include "lathe/data/tokenizer_source.h"
#include "lathe/data/wordpiece_tokenizer.h"

namespace lathe::data {
namespace {

using testing::ElementsAre;
using testing::EndsWith;

constexpr std::string_view kVocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\nFilm\nfilm\n";

WordpieceTokenizer load(const TemporaryDirectory& directory) {
  return WordpieceTokenizer::load(TokenizerSource(directory.path()));
}

// A whole tokenizer.json, small enough to read; `normalizer` and `model` are the parts tests vary.
std::string tokenizer_json(std::string_view normalizer, std::string_view model) {
  return fmt::format(R"({{
    "version": "1.0",
    "added_tokens": [
      {{"id": 3, "content": "[SEP]", "single_word": false, "lstrip": false, "rstrip": false,
        "normalized": false, "special": true}},
      {{"id": 6, "content": "<user>", "normalized": false}}
    ],
    "normalizer": {},
    "pre_tokenizer": {{"type": "BertPreTokenizer"}},
    "post_processor": {{"type": "TemplateProcessing", "single": [
      {{"SpecialToken": {{"id": "[CLS]", "type_id": 0}}}},
      {{"Sequence": {{"id": "A", "type_id": 0}}}},
      {{"SpecialToken": {{"id": "[SEP]", "type_id": 0}}}}]}},
    "model": {}
  }})",
                     normalizer, model);
}

constexpr std::string_view kNormalizer =
    R"({"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
        "strip_accents": null, "lowercase": false})";
constexpr std::string_view kModel =
    R"({"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100,
        "vocab": {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "Film": 4, "film": 5}})";

TEST(WordpieceLoader, ReadsAVocabularyOfOneTokenALine) {
  const TemporaryDirectory directory;
  directory.write("vocab.txt", kVocabulary);
  const auto tokenizer = load(directory);
  EXPECT_EQ(tokenizer.vocabulary_size(), 6);
  EXPECT_THAT(tokenizer.encode("Film"), ElementsAre(2, 5, 3)) << "lower case unless told otherwise";
}

TEST(WordpieceLoader, ReadsACompressedVocabularyAsIfItWerePlain) {
  const TemporaryDirectory directory;
  directory.write("vocab.txt.zst", compressed_text(kVocabulary));
  EXPECT_THAT(load(directory).encode("Film"), ElementsAre(2, 5, 3));
}

TEST(WordpieceLoader, IgnoresWhiteSpaceAtTheEndOfLines) {
  const TemporaryDirectory directory;
  directory.write("vocab.txt", "[PAD]\r\n[UNK] \r\n[CLS]\t\r\n[SEP]\u00A0\r\nfilm\r\n\r\n");
  const auto tokenizer = load(directory);
  EXPECT_THAT(tokenizer.tokens(), ElementsAre("[PAD]", "[UNK]", "[CLS]", "[SEP]", "film"));
}

TEST(WordpieceLoader, TakesFlagsFromTheTokenizersConfig) {
  const TemporaryDirectory directory;
  directory.write("vocab.txt", kVocabulary);
  directory.write("tokenizer_config.json", R"({"do_lower_case": false, "strip_accents": null,
    "tokenize_chinese_chars": false, "unk_token": {"content": "[UNK]"}})");
  const auto tokenizer = load(directory);
  EXPECT_THAT(tokenizer.encode("Film"), ElementsAre(2, 4, 3));
  EXPECT_EQ(tokenizer.options().normalizer,
            (NormalizerOptions{
                .isolate_chinese_characters = false, .strip_accents = false, .lowercase = false}));
}

TEST(WordpieceLoader, ReadsATokenizerJsonWithItsAddedTokens) {
  const TemporaryDirectory directory;
  directory.write("tokenizer.json", tokenizer_json(kNormalizer, kModel));
  const auto tokenizer = load(directory);
  EXPECT_THAT(tokenizer.encode("Film<user>film[SEP]"), ElementsAre(2, 4, 6, 5, 3, 3));
  EXPECT_FALSE(tokenizer.options().normalizer.strip_accents) << "null follows lowercase";
}

std::string error_of_json(std::string_view normalizer, std::string_view model) {
  const TemporaryDirectory directory;
  directory.write("tokenizer.json", tokenizer_json(normalizer, model));
  return error_of([&] { load(directory); });
}

TEST(WordpieceLoader, RefusesOtherKindsOfTokenizerByName) {
  EXPECT_THAT(error_of_json(kNormalizer, R"({"type": "BPE", "vocab": {}})"),
              EndsWith("tokenizer.json: model is of type BPE, but only WordPiece is supported"));
  EXPECT_THAT(
      error_of_json(R"({"type": "NFC"})", kModel),
      EndsWith("tokenizer.json: normalizer is of type NFC, but only BertNormalizer is supported"));
  EXPECT_THAT(
      error_of_json("null", kModel),
      EndsWith("tokenizer.json: normalizer is of type none, but only BertNormalizer is supported"));
}

TEST(WordpieceLoader, RefusesIdsThatDoNotCountUp) {
  EXPECT_THAT(error_of_json(kNormalizer, R"({"type": "WordPiece", "vocab": {"a": 0, "b": 2}})"),
              EndsWith("token \"b\" has the id 2, expected a number below 2, the size of the "
                       "vocabulary"));
  EXPECT_THAT(error_of_json(kNormalizer, R"({"type": "WordPiece", "vocab": {"a": 0, "b": 0}})"),
              EndsWith("tokens \"a\" and \"b\" have the same id 0"));
  EXPECT_THAT(error_of_json(kNormalizer, R"({"type": "WordPiece", "vocab": {}})"),
              EndsWith("model.vocab has no tokens"));
}

std::string error_of_vocabulary(std::string_view text) {
  const TemporaryDirectory directory;
  directory.write("vocab.txt", text);
  return error_of([&] { load(directory); });
}

TEST(WordpieceLoader, SaysWhatIsWrongWithAVocabulary) {
  EXPECT_THAT(error_of_vocabulary(""), EndsWith("vocab.txt: has no tokens, expected one a line"));
  EXPECT_THAT(error_of_vocabulary("[PAD]\nfilm\nthe\nfilm\n"),
              EndsWith("vocab.txt: line 4 repeats the token \"film\" of line 2"));
  EXPECT_THAT(error_of_vocabulary("[PAD]\n\xFF\n"), EndsWith("vocab.txt: line 2 is not UTF-8"));
  EXPECT_THAT(error_of_vocabulary("film\n"),
              EndsWith("vocab.txt: has no token \"[UNK]\", which the tokenizer needs"));
}

TEST(WordpieceLoader, RefusesBrokenJson) {
  const TemporaryDirectory directory;
  directory.write("tokenizer.json", "{\"model\": ");
  EXPECT_THAT(error_of([&] { load(directory); }),
              EndsWith("tokenizer.json:1:11: invalid JSON: unexpected end of input; expected '[', "
                       "'{', or a literal"));
}

TEST(WordpieceLoader, IsLoadedAgainFromItsOwnFiles) {
  const TemporaryDirectory directory;
  directory.write("tokenizer.json", tokenizer_json(kNormalizer, kModel));
  directory.write("tokenizer_config.json", R"({"tokenize_chinese_chars": false, "secret": 1})");
  const auto tokenizer = load(directory);
  std::filesystem::remove(directory.path() / "tokenizer.json");
  for (const auto& [name, contents] : tokenizer.files()) directory.write(name, contents);
  const auto again = load(directory);
  EXPECT_EQ(again.options().normalizer, tokenizer.options().normalizer);
  EXPECT_EQ(again.encode("Film<user>film"), tokenizer.encode("Film<user>film"));
  EXPECT_EQ(again.files(), tokenizer.files());
  EXPECT_THAT(tokenizer.files()[1].contents, testing::Not(testing::HasSubstr("secret")));
}

TEST(WordpieceLoader, RefusesDeeplyNestedJson) {
  const TemporaryDirectory directory;
  directory.write("vocab.txt", kVocabulary);
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  directory.write("tokenizer_config.json", "{\"do_lower_case\": " + deep + "}");
  EXPECT_THAT(error_of([&] { load(directory); }),
              EndsWith("tokenizer_config.json:1:82: nested more than 64 deep"));
}

}  // namespace
}  // namespace lathe::data
