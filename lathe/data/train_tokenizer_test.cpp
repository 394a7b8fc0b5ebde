#include "lathe/data/train_tokenizer.h"

#include <gmock/gmock.h>

#include "lathe/data/testing/temporary_directory.h"

namespace lathe::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<TokenizerFile> train(const std::vector<std::string_view>& texts,
                                 const TokenizerTraining& training, int threads = 1) {
  ThreadPool pool(threads);
  return train_tokenizer(texts, training, pool);
}

std::shared_ptr<const Tokenizer> load(const std::vector<TokenizerFile>& files,
                                      const std::string& without = "") {
  const TemporaryDirectory directory;
  for (const TokenizerFile& file : files)
    if (file.name != without) directory.write(file.name, file.contents);
  return load_tokenizer(directory.path());
}

std::string shown(const Tokenizer& tokenizer, std::string_view text) {
  std::string result;
  for (const std::int32_t id : tokenizer.encode(text)) result += tokenizer.token(id) + " ";
  return result;
}

TEST(TrainTokenizer, LearnsThePiecesOfWords) {
  // 5 special tokens, h a t once to begin a word and once to go on; ##at occurs 4 times, then
  // hat 3.
  const auto files = train({"hat hat hat that", "Hat"}, {.size = 13, .least_count = 1});
  const auto tokenizer = load(files);
  EXPECT_THAT(tokenizer->tokens(), ElementsAre("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a",
                                               "h", "t", "##a", "##h", "##t", "##at", "hat"));
  EXPECT_EQ(shown(*tokenizer, "that HAT"), "[CLS] t ##h ##at hat [SEP] ");
}

TEST(TrainTokenizer, StopsWherePairsBecomeRare) {
  EXPECT_EQ(load(train({"ab cd"}, {.size = 100, .least_count = 2}))->vocabulary_size(), 5 + 8);
}

TEST(TrainTokenizer, LearnsBytePairs) {
  // 1 + 256, then "hu", "Ġhu" (3 times each) and "Ġhut".
  const auto files =
      train({"hut hut hut hut"}, {.kind = "byte-level-bpe", .size = 260, .least_count = 1});
  const auto tokenizer = load(files);
  EXPECT_EQ(tokenizer->token(0), "<|endoftext|>");
  EXPECT_EQ(shown(*tokenizer, "hut hut"), "hut \xC4\xA0hut ");
  EXPECT_EQ(load(files, "tokenizer.json")->encode("hut hu\xC3\xBCt"),
            tokenizer->encode("hut hu\xC3\xBCt"))
      << "vocab.json and merges.txt say the same";
}

TEST(TrainTokenizer, WritesTheSameVocabularyTwice) {
  const auto files = train({"a fine film", "a final finale"}, {.size = 60});
  EXPECT_EQ(load(files)->tokens(), load(files, "tokenizer.json")->tokens());
}

TEST(TrainTokenizer, DependsNeitherOnThreadsNorOnOrder) {
  std::vector<std::string> texts;
  for (int i = 0; i < 500; ++i)
    texts.push_back(fmt::format("word{} of {} texts\xC3\xA9", i % 37, i * i % 101));
  std::vector<std::string_view> one(texts.begin(), texts.end()),
      other(texts.rbegin(), texts.rend());
  for (const std::string kind : {"wordpiece", "byte-level-bpe"}) {
    const TokenizerTraining training{.kind = kind, .size = 400};
    EXPECT_EQ(train(one, training, 1), train(other, training, 3)) << kind;
  }
}

TEST(TrainTokenizer, RefusesASizeWithoutRoomForCharacters) {
  EXPECT_EQ(error_of([] { train({"abc"}, {.size = 8}); }),
            "size 8: there is no room for the special tokens and every character twice");
  for (const std::string kind : {"wordpiece", "byte-level-bpe", "bpe", "unigram"})
    EXPECT_THAT(error_of([&] { train({"abc"}, {.kind = kind, .size = 1}); }),
                HasSubstr("size 1: there is no room"))
        << kind;
  EXPECT_THAT(error_of([] { train({"abc"}, {.kind = "bpx"}); }), HasSubstr("byte-level-bpe"));
}

TEST(TrainTokenizer, LearnsSentencePieceBpe) {
  // 3 + 256, the mark and 3 letters, then "at" (4 times), "hat" (4), "▁hat" (3).
  const auto files = train({"hat hat  hat\nthat"}, {.kind = "bpe", .size = 266, .least_count = 1});
  const auto tokenizer = load(files);
  EXPECT_EQ(tokenizer->vocabulary_size(), 266);
  EXPECT_EQ(shown(*tokenizer, "hat that é"), "<s> ▁hat ▁ t hat ▁ <0xC3> <0xA9> ");
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("hat that é")), "hat that é");
  EXPECT_EQ(tokenizer->end_id(), 2);
}

TEST(TrainTokenizer, LearnsUnigramModels) {
  std::vector<std::string_view> texts(50, "the ﬁlm the cat, the end");
  const auto files = train(texts, {.kind = "unigram", .size = 25});
  const auto tokenizer = load(files);
  // 5 special ones, 13 characters and the 4 words: nothing else is left of any use.
  EXPECT_EQ(tokenizer->vocabulary_size(), 22);
  EXPECT_EQ(shown(*tokenizer, "the film"), "<s> ▁the ▁film </s> ");
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("the cat")), "the cat");
  EXPECT_EQ(tokenizer->mask_id(), 4);
  EXPECT_EQ(train(texts, {.kind = "unigram", .size = 25}, 3), files);
}

}  // namespace
}  // namespace lathe::data
