#include "lathe/data/learn_merges.h"

#include <gmock/gmock.h>

#include <map>
#include <random>

namespace lathe::data {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

// Each merge makes a symbol of its own, `most` of them.
std::vector<SymbolPair> learn(std::vector<SymbolWord> words, std::int32_t first, std::int32_t most,
                              std::int64_t least_count) {
  std::int32_t next = first;
  return learn_merges(std::move(words), least_count,
                      [&](const SymbolPair&) -> std::optional<std::int32_t> {
                        if (next == first + most) return std::nullopt;
                        return next++;
                      });
}

// The definition: all pairs are counted anew before every merge.
std::vector<SymbolPair> learn_plainly(std::vector<SymbolWord> words, std::int32_t symbol,
                                      std::int64_t most, std::int64_t least_count) {
  std::vector<SymbolPair> merges;
  for (; static_cast<std::int64_t>(merges.size()) < most; ++symbol) {
    std::map<SymbolPair, std::int64_t> counts;
    for (const SymbolWord& word : words)
      for (std::size_t i = 0; i + 1 < word.symbols.size(); ++i)
        counts[{word.symbols[i], word.symbols[i + 1]}] += word.count;
    SymbolPair best;
    std::int64_t most_frequent = 0;
    for (const auto& [pair, count] : counts)  // in rising order, so that the lowest wins ties
      if (count > most_frequent) {
        best = pair;
        most_frequent = count;
      }
    if (most_frequent < std::max<std::int64_t>(1, least_count)) break;
    merges.push_back(best);
    for (SymbolWord& word : words) {
      std::vector<std::int32_t> merged;
      for (std::size_t i = 0; i < word.symbols.size(); ++i) {
        const bool is_pair =
            i + 1 < word.symbols.size() && SymbolPair{word.symbols[i], word.symbols[i + 1]} == best;
        merged.push_back(is_pair ? symbol : word.symbols[i]);
        if (is_pair) ++i;
      }
      word.symbols = merged;
    }
  }
  return merges;
}

TEST(LearnMerges, MergesTheMostFrequentPairFirst) {
  // "ab" twice and "abc" three times: ab occurs 5 times, then (ab)c 3 times.
  EXPECT_THAT(learn({{{0, 1}, 2}, {{0, 1, 2}, 3}}, 3, 10, 1), ElementsAre(Pair(0, 1), Pair(3, 2)));
}

TEST(LearnMerges, TakesTheLowestOfEqualPairs) {
  EXPECT_THAT(learn({{{2, 1}, 1}, {{0, 2}, 1}, {{0, 1}, 1}}, 3, 2, 1),
              ElementsAre(Pair(0, 1), Pair(0, 2)));
}

TEST(LearnMerges, StopsWhereNothingOccursOftenEnough) {
  EXPECT_THAT(learn({{{0, 1}, 1}}, 2, 10, 2), IsEmpty());
}

TEST(LearnMerges, CutsARunOfOneSymbolFromTheLeft) {
  // aaaaa: (aa)(aa)a, then ((aa)(aa))a.
  EXPECT_THAT(learn({{{0, 0, 0, 0, 0}, 1}}, 1, 3, 1),
              ElementsAre(Pair(0, 0), Pair(1, 0), Pair(1, 2)));
}

TEST(LearnMerges, CountsTwoSpellingsOfASymbolTogether) {
  // abc is reached by ab + c in one word and by a + bc in another: abc + d then occurs 7 times,
  // more often than 8 9.
  const auto symbol_of = [](const SymbolPair& pair) -> std::optional<std::int32_t> {
    if (pair == SymbolPair{0, 1}) return 4;                              // ab
    if (pair == SymbolPair{4, 2} || pair == SymbolPair{0, 5}) return 6;  // abc
    if (pair == SymbolPair{6, 3}) return 7;                              // abcd
    return std::nullopt;
  };
  EXPECT_THAT(
      learn_merges({{{0, 1, 2, 3}, 3}, {{0, 1, 2}, 6}, {{0, 5, 3}, 4}, {{8, 9}, 4}}, 2, symbol_of),
      ElementsAre(Pair(0, 1), Pair(4, 2), Pair(0, 5), Pair(6, 3)));
}

TEST(LearnMerges, AgreesWithCountingAnew) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<SymbolWord> words(20);
    for (SymbolWord& word : words) {
      word.count = 1 + random() % 5;
      word.symbols.resize(1 + random() % 12);
      for (std::int32_t& symbol : word.symbols) symbol = static_cast<std::int32_t>(random() % 3);
    }
    EXPECT_EQ(learn(words, 3, 30, 2), learn_plainly(words, 3, 30, 2)) << round;
  }
}

}  // namespace
}  // namespace lathe::data
