#include "lathe/data/learn_unigram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace lathe::data {
namespace {

using testing::Contains;
using testing::Pair;

std::vector<ScoredPiece> learn(const std::vector<CountedWord>& words, std::int64_t size,
                               int threads = 1) {
  ThreadPool pool(threads);
  return learn_unigram(words, {"a", "b", "c", "d"}, {.size = size}, pool);
}

TEST(LearnUnigram, KeepsWhatOccursTogether) {
  const std::vector<ScoredPiece> pieces = learn({{"abc", 100}, {"dad", 50}, {"abcdad", 5}}, 6);
  EXPECT_EQ(pieces.size(), 6u);
  EXPECT_EQ(pieces[0].first, "abc");
  EXPECT_EQ(pieces[1].first, "dad");
  for (const char* const required : {"a", "b", "c", "d"})
    EXPECT_THAT(pieces, Contains(Pair(required, testing::_)));
}

TEST(LearnUnigram, GivesLogarithmsOfProbabilitiesByFallingScore) {
  const std::vector<ScoredPiece> pieces = learn({{"abab", 1000}, {"cd", 500}}, 8);
  double sum = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    sum += std::exp(pieces[i].second);
    EXPECT_GE(pieces[i == 0 ? 0 : i - 1].second, pieces[i].second);
  }
  // Digamma lies below the logarithm, by less than one part in the count.
  EXPECT_LT(sum, 1.0);
  EXPECT_GT(sum, 0.99);
}

TEST(LearnUnigram, IsTheSameOnAnyNumberOfThreads) {
  std::vector<CountedWord> words;
  for (int i = 0; i < 500; ++i) {
    std::string word;
    for (int k = i + 3; k > 0; k /= 4) word += static_cast<char>('a' + k % 4);
    words.push_back({word + word, 1 + i % 7});
  }
  const std::vector<ScoredPiece> one = learn(words, 60, 1);
  EXPECT_EQ(one.size(), 60u);
  EXPECT_EQ(learn(words, 60, 3), one);
}

TEST(LearnUnigram, HasNoMoreThanThereIs) {
  EXPECT_EQ(learn({{"ab", 5}}, 100).size(), 5u) << "a, b, c, d and ab";
  EXPECT_EQ(learn({}, 100).size(), 4u);
}

}  // namespace
}  // namespace lathe::data
