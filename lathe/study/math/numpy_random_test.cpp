#include "lathe/study/math/numpy_random.h"

#include <gtest/gtest.h>

#include <numeric>

namespace lathe::study {
namespace {

// The expected numbers are NumPy 1.24's own for RandomState(7), drawn in this order.
TEST(NumpyRandom, GivesTheNumbersOfRandomState) {
  NumpyRandom random(7);
  for (const double expected :
       {0.07630828937395717, 0.7799187922401146, 0.4384092314408935, 0.7234651778309412})
    EXPECT_EQ(random.next(), expected);
  for (const std::uint64_t expected : {348, 185, 398, 535, 584, 345})
    EXPECT_EQ(random.below(1000), expected);
  std::vector<int> list(10);
  std::iota(list.begin(), list.end(), 0);
  random.shuffle(list);
  EXPECT_EQ(list, (std::vector<int>{1, 3, 2, 5, 9, 0, 4, 6, 7, 8}));
  EXPECT_EQ(random.choice(std::vector<double>{.1, .2, .3, .4}, 6),
            (std::vector<std::size_t>{3, 1, 2, 3, 0, 3}));
}

TEST(NumpyRandom, SumsInNumpysOrder) {
  const std::vector<std::pair<int, double>> sums = {{7, 2.5928571428571425},
                                                    {8, 2.7178571428571425},
                                                    {50, 4.499205338329424},
                                                    {129, 5.440899030573669},
                                                    {300, 6.282663880299504}};
  for (const auto& [count, expected] : sums) {
    std::vector<double> harmonic;
    for (int i = 1; i <= count; ++i) harmonic.push_back(1.0 / i);
    EXPECT_EQ(numpy_sum(harmonic), expected) << count;
  }
}

}  // namespace
}  // namespace lathe::study
