#include "lathe/data/token_models/unigram_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "lathe/data/counter_random.h"
#include "lathe/data/testing/random_text.h"
#include "lathe/data/testing/temporary_directory.h"
#include "lathe/data/token_table.h"

namespace lathe::data {
namespace {

using testing::ElementsAre;

std::vector<std::int32_t> ids_of(const UnigramModel& model, std::string_view text) {
  std::vector<std::int32_t> ids;
  const std::string readable = padded(text);
  model.append_ids(std::string_view(readable).substr(0, text.size()), ids);
  return ids;
}

TEST(UnigramModel, FindsTheMostLikelyTokens) {
  const UnigramModel model({{"<unk>", 0}, {"a", -1}, {"b", -1}, {"ab", -1.5}, {"abb", -4}}, 0,
                           false);
  EXPECT_THAT(ids_of(model, "ab"), ElementsAre(3)) << "-1.5 beats -1 - 1";
  EXPECT_THAT(ids_of(model, "abb"), ElementsAre(3, 2)) << "-2.5 beats -4";
  EXPECT_THAT(ids_of(model, "ba"), ElementsAre(2, 1));
}

TEST(UnigramModel, FusesUnknownCharacters) {
  const UnigramModel model({{"<unk>", 0}, {"a", -1}}, 0, false);
  EXPECT_THAT(ids_of(model, "中文a中"), ElementsAre(0, 1, 0));
}

TEST(UnigramModel, FallsBackOnBytes) {
  UnigramModel::Scores scores = {{"<unk>", 0}, {"a", -1}};
  for (int byte = 0; byte < 256; ++byte) scores.emplace_back(fmt::format("<0x{:02X}>", byte), -9);
  const UnigramModel model(scores, 0, true);
  EXPECT_THAT(ids_of(model, "aé"), ElementsAre(1, 2 + 0xC3, 2 + 0xA9));
}

TEST(UnigramModel, FailsAtACharacterWithoutAToken) {
  const UnigramModel model({{"a", -1}, {"b文", -1}}, -1, false);
  EXPECT_THAT(ids_of(model, "aa"), ElementsAre(0, 0));
  EXPECT_EQ(error_of([&] { ids_of(model, "b"); }),
            "the character \"b\" has no token, and there is none for unknown ones");
}

// The definition: of all ways to cut, tried one after the other, the one of greatest sum.
double best_sum(const std::map<std::string, double>& scores, const std::string& text,
                std::map<std::string, double>& known) {
  if (text.empty()) return 0;
  if (const auto found = known.find(text); found != known.end()) return found->second;
  double best = -1e9;
  for (std::size_t length = 1; length <= text.size(); ++length)
    if (const auto token = scores.find(text.substr(0, length)); token != scores.end())
      best = std::max(best, token->second + best_sum(scores, text.substr(length), known));
  return known[text] = best;
}

TEST(UnigramModel, ReachesTheGreatestSumOnRandomTexts) {
  CounterRandom random(5);
  UnigramModel::Scores scores;
  std::map<std::string, double> map;
  const auto add = [&](const std::string& token) {
    if (map.contains(token)) return;
    scores.emplace_back(token, -1 - static_cast<double>(random.below(1000)) / 100);
    map.insert(scores.back());
  };
  for (const char letter : {'a', 'b', 'c'}) add(std::string(1, letter));
  for (int i = 0; i < 60; ++i) {
    std::string token;
    for (std::uint64_t k = 0, count = 2 + random.below(4); k < count; ++k)
      token += static_cast<char>('a' + random.below(3));
    add(token);
  }
  const UnigramModel model(scores, -1, false);
  for (int i = 0; i < 500; ++i) {
    std::string text;
    for (std::uint64_t k = 0, count = 1 + random.below(30); k < count; ++k)
      text += static_cast<char>('a' + random.below(3));
    double sum = 0;
    std::string joined;
    for (const std::int32_t id : ids_of(model, text)) {
      sum += scores[static_cast<std::size_t>(id)].second;
      joined += scores[static_cast<std::size_t>(id)].first;
    }
    std::map<std::string, double> known;
    ASSERT_EQ(joined, text);
    // At most 30 additions of numbers below 512, each rounded by less than 2^-44.
    ASSERT_NEAR(sum, best_sum(map, text, known), 1e-10) << text;
  }
}

}  // namespace
}  // namespace lathe::data
