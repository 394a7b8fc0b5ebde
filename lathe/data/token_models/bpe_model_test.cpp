#include "lathe/data/token_models/bpe_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/data/counter_random.h"
#include "lathe/data/testing/temporary_directory.h"

namespace lathe::data {
namespace {

using testing::ElementsAre;

std::vector<std::int32_t> ids_of(const BpeModel& model, std::string_view text) {
  std::vector<std::int32_t> ids;
  const std::string readable = padded(text);
  model.append_ids(std::string_view(readable).substr(0, text.size()), ids);
  return ids;
}

TEST(BpeModel, FusesUnknownCharactersOrNot) {
  const std::vector<std::string> tokens = {"<unk>", "a"};
  BpeModel::Options options{.unknown_token = "<unk>"};
  EXPECT_THAT(ids_of(BpeModel(tokens, {}, options), "xya"), ElementsAre(0, 0, 1));
  options.fuses_unknown = true;
  EXPECT_THAT(ids_of(BpeModel(tokens, {}, options), "xyax"), ElementsAre(0, 1, 0));
  EXPECT_THAT(ids_of(BpeModel(tokens, {}, {}), "xay"), ElementsAre(1)) << "gone without a token";
}

TEST(BpeModel, FallsBackOnBytes) {
  std::vector<std::string> tokens = {"<unk>", "a", "<0xC3>", "<0xA9>"};
  const BpeModel model(tokens, {}, {.unknown_token = "<unk>", .has_byte_tokens = true});
  EXPECT_THAT(ids_of(model, "aé"), ElementsAre(1, 2, 3));
  EXPECT_THAT(ids_of(model, "è"), ElementsAre(0)) << "all bytes or none";
}

TEST(BpeModel, MarksTheEndOfWordsOrWhatContinuesThem) {
  const BpeModel suffixed({"a", "b", "a</w>", "b</w>", "ab</w>"}, {{"a", "b</w>"}},
                          {.word_suffix = "</w>"});
  EXPECT_THAT(ids_of(suffixed, "ab"), ElementsAre(4));
  EXPECT_THAT(ids_of(suffixed, "aba"), ElementsAre(0, 1, 2));
  const BpeModel prefixed({"a", "b", "##a", "##b", "ab", "##ab"}, {{"a", "##b"}, {"##a", "##b"}},
                          {.continuation_prefix = "##"});
  EXPECT_THAT(ids_of(prefixed, "abab"), ElementsAre(4, 5));
}

TEST(BpeModel, TakesAWholeTokenWhateverItsMergesWhenTold) {
  const std::vector<std::string> tokens = {"a", "b", "c", "ab", "abc"};
  EXPECT_THAT(ids_of(BpeModel(tokens, {{"a", "b"}}, {}), "abc"), ElementsAre(3, 2));
  EXPECT_THAT(ids_of(BpeModel(tokens, {{"a", "b"}}, {.ignores_merges = true}), "abc"),
              ElementsAre(4));
}

TEST(BpeModel, MergesAcrossWordsWhereMergesDo) {
  const std::vector<std::string> tokens = {"<unk>", "▁", "a", "b", "▁a", "b▁"};
  const BpeModel::Merges merges = {{"▁", "a"}, {"b", "▁"}};
  const BpeModel model(tokens, merges, {.unknown_token = "<unk>"});
  EXPECT_THAT(ids_of(model, "b▁a"), ElementsAre(3, 4)) << "the lower rank first";
  EXPECT_THAT(ids_of(model, "b▁b"), ElementsAre(5, 3));
}

// A text that nothing cut is merged word by word where that cannot be seen. A merge that would join
// words, of a letter that never occurs, forbids it.
TEST(BpeModel, GivesTheSameWordByWord) {
  std::vector<std::string> tokens = {"<unk>", "▁", "a", "b", "▁a", "ab", "▁▁", "▁ab", "▁▁ab"};
  BpeModel::Merges merges = {{"a", "b"}, {"▁", "▁"}, {"▁", "a"}, {"▁", "ab"}, {"▁▁", "ab"}};
  const BpeModel::Options options{.unknown_token = "<unk>", .fuses_unknown = true};
  const BpeModel by_words(tokens, merges, options);
  for (const char* token : {"z", "z▁"}) tokens.emplace_back(token);
  merges.emplace_back("z", "▁");
  const BpeModel whole(tokens, merges, options);
  CounterRandom random(9);
  for (int i = 0; i < 2'000; ++i) {
    std::string text;
    static constexpr const char* kParts[] = {"▁", "▁", "a", "b", "中"};
    for (std::uint64_t k = 0, count = 1 + random.below(40); k < count; ++k)
      text += kParts[random.below(5)];
    ASSERT_EQ(ids_of(by_words, text), ids_of(whole, text)) << text;
  }
}

// Few symbols are merged by looking at all of them again and again, many by a heap.
TEST(BpeModel, MergesLongAndShortWordsAlike) {
  std::vector<std::string> tokens = {"a", "b", "|"};
  BpeModel::Merges merges;
  CounterRandom random(3);
  while (merges.size() < 40) {
    const std::string left = tokens[random.below(tokens.size())];
    const std::string right = tokens[random.below(tokens.size())];
    const std::string both = left + right;
    if (both.find('|') != both.npos || both.size() > 12 ||
        std::find(tokens.begin(), tokens.end(), both) != tokens.end())
      continue;
    tokens.push_back(both);
    merges.emplace_back(left, right);
  }
  const BpeModel model(tokens, merges, {});
  for (int i = 0; i < 300; ++i) {
    std::string word;
    for (std::uint64_t k = 0, count = 1 + random.below(20); k < count; ++k)
      word += random.below(2) ? 'a' : 'b';
    std::vector<std::int32_t> expected = ids_of(model, word);
    expected.push_back(2);
    std::string line;
    std::vector<std::int32_t> all;
    for (int copy = 0; copy < 30; ++copy) {
      line += word + "|";
      all.insert(all.end(), expected.begin(), expected.end());
    }
    ASSERT_EQ(ids_of(model, line), all) << word;
  }
}

TEST(BpeModel, RefusesWhatDoesNotFitTogether) {
  EXPECT_EQ(error_of([] { BpeModel({"a"}, {}, {.unknown_token = "?"}); }),
            "has no token \"?\", which stands for what has none");
  EXPECT_EQ(error_of([] {
              BpeModel({"a", "b"}, {{"a", "b"}}, {.continuation_prefix = "##"});
            }),
            "merge 1: \"b\" does not begin with the prefix \"##\"");
}

}  // namespace
}  // namespace lathe::data
