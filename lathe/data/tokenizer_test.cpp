#include "lathe/data/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/data/testing/temporary_directory.h"

namespace lathe::data {
namespace {

using testing::ElementsAre;
using testing::EndsWith;

constexpr std::string_view kWordpiece = R"({
  "normalizer": {"type": "BertNormalizer"}, "pre_tokenizer": {"type": "BertPreTokenizer"},
  "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 2], "cls": ["[CLS]", 1]},
  "model": {"type": "WordPiece", "vocab": {"[PAD]": 0, "[CLS]": 1, "[SEP]": 2, "[UNK]": 3, "a": 4}}
})";

TEST(LoadTokenizer, ReadsADirectoryOrOneFileOfAnyName) {
  const TemporaryDirectory directory;
  directory.write("tokenizer.json", kWordpiece);
  const auto file = directory.write("other/mine.json", kWordpiece);
  directory.write("other/tokenizer_config.json", "{\"unk_token\": \"a\"}");
  EXPECT_THAT(load_tokenizer(directory.path())->encode("a b"), ElementsAre(1, 4, 3, 2));
  EXPECT_THAT(load_tokenizer(file)->encode("a b"), ElementsAre(1, 4, 3, 2))
      << "what lies beside a file is not read";
}

TEST(LoadTokenizer, NamesWhatItFoundWhenNoKindReadsIt) {
  const TemporaryDirectory directory;
  EXPECT_THAT(error_of([&] { load_tokenizer(directory.path()); }),
              EndsWith(": has no tokenizer: expected tokenizer.json or a vocabulary such as "
                       "vocab.txt"));
  directory.write("tokenizer.json", R"({"model": {"type": "WordLevel", "vocab": {}}})");
  EXPECT_THAT(
      error_of([&] { load_tokenizer(directory.path()); }),
      testing::ContainsRegex("tokenizer.json: its model is of type WordLevel, which no kind "
                             "of tokenizer reads; known: .*wordpiece"));
}

TEST(LoadTokenizer, KnowsTheFilesOfEveryKind) {
  EXPECT_THAT(all_tokenizer_files(),
              testing::IsSupersetOf({"special_tokens_map.json", "tokenizer.json",
                                     "tokenizer_config.json", "vocab.txt"}));
  for (const auto& [name, kind] : Registry<TokenizerKind>::instance().all()) {
    EXPECT_FALSE(kind.summary.empty()) << name;
    EXPECT_FALSE(kind.files.empty()) << name;
  }
}

TEST(LoadTokenizer, GivesWhatModelsAndTrainersAsk) {
  const TemporaryDirectory directory;
  directory.write("tokenizer.json", kWordpiece);
  const auto tokenizer = load_tokenizer(directory.path());
  EXPECT_EQ(tokenizer->vocabulary_size(), 5);
  EXPECT_EQ(tokenizer->num_special(), 2);
  EXPECT_EQ(tokenizer->padding_id(), 0);
  EXPECT_EQ(tokenizer->mask_id(), -1);
  EXPECT_THAT(tokenizer->special_ids(), ElementsAre(1, 2, 0));
}

TEST(LoadTokenizer, FitsAModelWithAFewRowsMore) {
  const TemporaryDirectory directory;
  directory.write("tokenizer.json", kWordpiece);
  const auto tokenizer = load_tokenizer(directory.path());
  tokenizer->check_size(5);
  tokenizer->check_size(64);
  for (const int size : {4, 6, 65, 6400})
    EXPECT_THAT(error_of([&] { tokenizer->check_size(size); }),
                EndsWith(fmt::format("tokenizer.json: has 5 tokens, but config.json says "
                                     "vocab_size is {}",
                                     size)));
}

TEST(LoadTokenizer, DecodesWithoutSpecialTokens) {
  const TemporaryDirectory directory;
  directory.write("tokenizer.json", kWordpiece);
  const auto tokenizer = load_tokenizer(directory.path());
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("a a")), "a a");
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("a b"), true), "[CLS] a [UNK] [SEP]");
  EXPECT_EQ(error_of([&] { tokenizer->decode(std::vector<std::int32_t>{5}); }),
            "token id 5 is outside the vocabulary of 5 tokens");
}

}  // namespace
}  // namespace lathe::data
