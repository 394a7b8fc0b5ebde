#include "lathe/search/finalist_front.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lathe::search {
namespace {

// Five finalists whose seeds differ as no others do, in thousandths: the sums of squares are two,
// but of the last, whose seeds agree, and by seed the middle ones are zero.
constexpr double kApart[5][3] = {{1, -1, 0}, {-1, 1, 0}, {0, 1, -1}, {0, -1, 1}, {0, 0, 0}};

Finalist finalist(int trial, double bits, double loss) {
  Finalist result{.sampler = "auto", .trial = trial, .costs = {{"weight-bits", bits}}};
  for (const double apart : kApart[trial]) result.losses.push_back(loss + 0.001 * apart);
  return result;
}

bool is_any(const Finalist&) {
  return true;
}

// A variance of 1e-6. Of two degrees of freedom the median of variances is (8/9)^3 of the true one
// by Wilson and Hilferty, and the error of a difference of means of three is the root of two thirds
// of that.
TEST(FinalistFront, KnowsByTheMedianOfAllHowFarSeedsAreApart) {
  std::vector<Finalist> finalists;
  for (int trial = 0; trial < 5; ++trial) finalists.push_back(finalist(trial, trial, 0.3));
  const double expected = std::sqrt(1e-6 / (8.0 / 9 * 8 / 9 * 8 / 9) * 2 / 3);
  EXPECT_NEAR(FinalistFront(finalists, "weight-bits").error(), expected, 1e-9);
  // Those that training hardly holds together say nothing of the others.
  for (const auto& losses : {std::vector{0.9, 0.6, 0.3}, std::vector{0.3, 0.6, 0.9}}) {
    finalists.push_back(finalist(4, 4, 0));
    finalists.back().losses = losses;
  }
  EXPECT_NEAR(FinalistFront(finalists, "weight-bits").error(), expected, 1e-9);
  // What a seed does to all alike is in no difference.
  for (Finalist& each : finalists) each.losses[0] += 0.02;
  EXPECT_NEAR(FinalistFront(finalists, "weight-bits").error(), expected, 1e-9);
}

TEST(FinalistFront, LeavesOutWhatOthersBeatByMoreThanAnErrorAtNoMoreCost) {
  // An error of about 0.001.
  const std::vector<Finalist> finalists = {finalist(0, 1, 0.321), finalist(1, 2, 0.301),
                                           finalist(2, 2, 0.3018),  // worse by less
                                           finalist(3, 3, 0.305),   // by more, and of more bits
                                           finalist(4, 3, 0.201)};
  const FinalistFront front(finalists, "weight-bits");
  std::vector<int> on_it;
  for (const Finalist& each : finalists)
    if (front.has(each)) on_it.push_back(each.trial);
  EXPECT_EQ(on_it, (std::vector{0, 1, 2, 4}));
}

TEST(FinalistFront, SpendsWhatItMayOnWhatLossesDoNotTellApart) {
  const std::vector<Finalist> finalists = {finalist(0, 1, 0.301), finalist(1, 2, 0.3015),
                                           finalist(2, 2.5, 0.305), finalist(3, 4, 0.201),
                                           finalist(4, 9, 0.4)};
  const FinalistFront front(finalists, "weight-bits");
  EXPECT_EQ(front.best_within(3, is_any)->trial, 1);
  EXPECT_EQ(front.best_within(1.5, is_any)->trial, 0);
  EXPECT_EQ(front.best_within(4, is_any)->trial, 3);
  EXPECT_EQ(front.best_within(4, [](const Finalist& each) { return each.trial == 2; })->trial, 2);
  EXPECT_EQ(front.best_within(0.5, is_any), nullptr);
}

TEST(FinalistFront, TakesLossesAsTheyAreWhereThereIsOneSeed) {
  const std::vector<Finalist> finalists = {
      {.sampler = "auto", .losses = {0.300}, .costs = {{"weight-bits", 1}}},
      {.sampler = "auto", .trial = 1, .losses = {0.301}, .costs = {{"weight-bits", 2}}}};
  const FinalistFront front(finalists, "weight-bits");
  EXPECT_EQ(front.error(), 0);
  EXPECT_FALSE(front.has(finalists[1]));
  EXPECT_EQ(front.best_within(2, is_any)->trial, 0);
}

}  // namespace
}  // namespace lathe::search
