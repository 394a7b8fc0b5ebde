#include "lathe/data/counter_random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

namespace lathe::data {
namespace {

TEST(CounterRandom, RepeatsItselfFromItsKeyAndNoOther) {
  EXPECT_EQ(CounterRandom(1, 2, 3).next(), CounterRandom(1, 2, 3).next());
  const std::set<std::uint64_t> firsts = {
      CounterRandom(0, 0, 0).next(), CounterRandom(1, 0, 0).next(), CounterRandom(0, 1, 0).next(),
      CounterRandom(0, 0, 1).next(), CounterRandom(1, 1, 0).next()};
  EXPECT_EQ(firsts.size(), 5u);
}

TEST(CounterRandom, DrawsEachNumberBelowALimitAboutEquallyOften) {
  CounterRandom random(7);
  std::array<int, 6> counts{};
  for (int i = 0; i < 60'000; ++i) ++counts.at(random.below(6));
  // The standard deviation of a count is sqrt(60000 * 1/6 * 5/6) = 91; five of them.
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 456);
}

TEST(CounterRandom, ShufflesWithoutLosingAnything) {
  std::array<int, 100> values{};
  std::iota(values.begin(), values.end(), 0);
  const auto before = values;
  CounterRandom(7).shuffle(std::span<int>(values));
  EXPECT_NE(values, before);
  std::sort(values.begin(), values.end());
  EXPECT_EQ(values, before);
}

}  // namespace
}  // namespace lathe::data
