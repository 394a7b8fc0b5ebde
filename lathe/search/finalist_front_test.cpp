#include "lathe/search/finalist_front.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lathe::search {
namespace {

Finalist finalist(int trial, double bits, std::vector<double> losses) {
  return {.sampler = "auto",
          .trial = trial,
          .losses = std::move(losses),
          .costs = {{"weight-bits", bits}}};
}

bool is_any(const Finalist&) {
  return true;
}

// Three seeds each, 0.001 apart: a variance of 1e-6. Of two degrees of freedom the median of
// variances is (8/9)^3 of the true one by Wilson and Hilferty, whose error of a difference of means
// of three is the root of two thirds of it.
TEST(FinalistFront, KnowsByTheMedianOfAllHowFarSeedsAreApart) {
  const std::vector<Finalist> finalists = {
      finalist(0, 1, {0.300, 0.301, 0.302}), finalist(1, 2, {0.290, 0.291, 0.292}),
      finalist(2, 3, {0.3, 0.6, 0.9})};  // hardly held together
  const double usual = 1e-6 / (8.0 / 9 * 8 / 9 * 8 / 9);
  EXPECT_NEAR(FinalistFront(finalists, "weight-bits").error(), std::sqrt(usual * 2 / 3), 1e-9);
}

TEST(FinalistFront, LeavesOutWhatOthersBeatByMoreThanChanceAtNoMoreCost) {
  // An error of about 0.001.
  const std::vector<Finalist> finalists = {
      finalist(0, 1, {0.320, 0.321, 0.322}), finalist(1, 2, {0.300, 0.301, 0.302}),
      finalist(2, 2, {0.3015, 0.3025, 0.3035}),  // worse by less than two errors
      finalist(3, 3, {0.304, 0.305, 0.306}),     // by more, and of more bits
      finalist(4, 3, {0.2, 0.201, 0.202})};
  const FinalistFront front(finalists, "weight-bits");
  ASSERT_GT(front.error(), 0.0009);
  ASSERT_LT(front.error(), 0.0011);
  std::vector<int> on_it;
  for (const Finalist& each : finalists)
    if (front.has(each)) on_it.push_back(each.trial);
  EXPECT_EQ(on_it, (std::vector{0, 1, 2, 4}));
}

TEST(FinalistFront, SpendsWhatItMayOnWhatLossesDoNotTellApart) {
  const std::vector<Finalist> finalists = {
      finalist(0, 1, {0.300, 0.301, 0.302}), finalist(1, 2, {0.3005, 0.3015, 0.3025}),
      finalist(2, 2.5, {0.304, 0.305, 0.306}), finalist(3, 4, {0.2, 0.201, 0.202})};
  const FinalistFront front(finalists, "weight-bits");
  EXPECT_EQ(front.best_within(3, is_any)->trial, 1);
  EXPECT_EQ(front.best_within(1.5, is_any)->trial, 0);
  EXPECT_EQ(front.best_within(4, is_any)->trial, 3);
  EXPECT_EQ(front.best_within(4, [](const Finalist& each) { return each.trial == 2; })->trial, 2);
  EXPECT_EQ(front.best_within(0.5, is_any), nullptr);
}

TEST(FinalistFront, TakesLossesAsTheyAreWhereThereIsOneSeed) {
  const std::vector<Finalist> finalists = {finalist(0, 1, {0.300}), finalist(1, 2, {0.301})};
  const FinalistFront front(finalists, "weight-bits");
  EXPECT_EQ(front.error(), 0);
  EXPECT_FALSE(front.has(finalists[1]));
  EXPECT_EQ(front.best_within(2, is_any)->trial, 0);
}

}  // namespace
}  // namespace lathe::search
