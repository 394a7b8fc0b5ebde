#include "lathe/search/format_starts.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace lathe::search {
namespace {

TEST(FrontBudget, LiesAsOftenInEachPartOfWhatIsPossible) {
  // Quarters of a square whose sides are as many times the least as the most is theirs.
  std::array<int, 4> counts{};
  for (int number = 0; number < 40; ++number) {
    const BitBudget budget =
        front_budget({.weights = 1, .data = 3}, {.weights = 4, .data = 12}, number);
    EXPECT_GE(*budget.weights, 1);
    EXPECT_LE(*budget.weights, 4);
    EXPECT_GE(*budget.data, 3);
    EXPECT_LE(*budget.data, 12);
    ++counts[static_cast<std::size_t>(2 * (*budget.weights > 2) + (*budget.data > 6))];
  }
  for (const int count : counts) EXPECT_NEAR(count, 10, 3);
}

TEST(FrontBudget, IsOfWhatHasBounds) {
  EXPECT_FALSE(front_budget({.weights = 1}, {.weights = 4}, 0).data);
  EXPECT_EQ(front_budget({.weights = 8}, {.weights = 4}, 0).weights, 8);
}

}  // namespace
}  // namespace lathe::search
