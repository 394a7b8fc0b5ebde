#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "lathe/ops/test_tensors.h"

namespace lathe::ops {
namespace {

using testing::ElementsAre;

TEST(Rope, ChangesNothingAtPositionZero) {
  const Tensor x = f32({1, 4}, {1, 2, 3, 4});
  EXPECT_TRUE(identical(evaluate("rope(f32[1,4], i64[1]) {heads=1}", {x, i64({1}, {0})})[0], x));
}

TEST(Rope, TurnsTheHalvesOfAHeadAgainstEachOther) {
  // A head of 2 has one pair, which turns by as many radians as the position says.
  const std::vector<float> y =
      result_of("rope(f32[1,4], i64[1]) {heads=2}", {f32({1, 4}, {1, 0, 0, 1}), i64({1}, {2})});
  EXPECT_FLOAT_EQ(y[0], std::cos(2.0f));
  EXPECT_FLOAT_EQ(y[1], std::sin(2.0f));
  EXPECT_FLOAT_EQ(y[2], -std::sin(2.0f));
  EXPECT_FLOAT_EQ(y[3], std::cos(2.0f));
}

TEST(Rope, TurnsLaterPairsMoreSlowly) {
  // Head size 4 and theta 100: the second pair turns by position / 10.
  const std::vector<float> halves = result_of("rope(f32[1,4], i64[1]) {heads=1, theta=100.0}",
                                              {f32({1, 4}, {0, 1, 0, 0}), i64({1}, {3})});
  EXPECT_FLOAT_EQ(halves[1], std::cos(0.3f));
  EXPECT_FLOAT_EQ(halves[3], std::sin(0.3f));
  const std::vector<float> neighbours =
      result_of("rope(f32[1,4], i64[1]) {heads=1, theta=100.0, interleaved=true}",
                {f32({1, 4}, {0, 0, 1, 0}), i64({1}, {3})});
  EXPECT_FLOAT_EQ(neighbours[2], std::cos(0.3f));
  EXPECT_FLOAT_EQ(neighbours[3], std::sin(0.3f));
}

TEST(Rope, KeepsTheNormOfEachPair) {
  const std::vector<float> y =
      result_of("rope(f32[2,4], i64[2]) {heads=1}",
                {f32({2, 4}, {3, 5, 4, 12, 3, 5, 4, 12}), i64({2}, {1, 1000})});
  for (const std::size_t token : {0u, 4u}) {
    EXPECT_FLOAT_EQ(std::hypot(y[token], y[token + 2]), 5);
    EXPECT_FLOAT_EQ(std::hypot(y[token + 1], y[token + 3]), 13);
  }
}

TEST(Rope, StretchesPositionsByAFactor) {
  const Tensor x = f32({1, 4}, {1, 2, 3, 4});
  EXPECT_TRUE(
      identical(evaluate("rope(f32[1,4], i64[1]) {heads=1, factor=4.0}", {x, i64({1}, {12})})[0],
                evaluate("rope(f32[1,4], i64[1]) {heads=1}", {x, i64({1}, {3})})[0]));
}

TEST(Rope, SlowsDownOnlyThePairsThatSeldomTurnRound) {
  // Head size 6 and theta 1000: frequencies 1, 0.1 and 0.01. In 20 pi positions the pairs go round
  // 10, 1 and 0.1 times.
  constexpr double kOriginal = 63, kTurns = kOriginal * 0.1 / (2 * std::numbers::pi);
  const std::vector<float> y = result_of(
      "rope(f32[1,6], i64[1]) {heads=1, theta=1000.0, factor=4.0, original_positions=63, "
      "low_turns=0.5, high_turns=4.5}",
      {f32({1, 6}, {1, 1, 1, 0, 0, 0}), i64({1}, {7})});
  const double share = (kTurns - 0.5) / 4;
  EXPECT_NEAR(y[0], std::cos(7.0), 1e-6);
  EXPECT_NEAR(y[1], std::cos(0.7 * ((1 - share) / 4 + share)), 1e-6);
  EXPECT_NEAR(y[2], std::cos(0.07 / 4), 1e-6);
}

TEST(Rope, RefusesAScalingThatMeansNothing) {
  EXPECT_EQ(refusal_of("rope(f32[T,4], i32[T]) {heads=1, factor=0.0}"),
            "node \"y\": rope: factor is 0: expected above 0");
  EXPECT_EQ(
      refusal_of("rope(f32[T,4], i32[T]) {heads=1, factor=8.0, original_positions=64}"),
      "node \"y\": rope: original_positions 64 with low_turns 0 and high_turns 0: expected the "
      "latter above");
}

TEST(Rope, RefusesHeadsOfOddSize) {
  EXPECT_EQ(
      refusal_of("rope(f32[T,6], i32[T]) {heads=2}"),
      "node \"y\": rope: the last axis of f32[T,6] does not divide into 2 heads of even size");
  EXPECT_EQ(refusal_of("rope(f32[B,L,4], i32[L]) {heads=2}"),
            "node \"y\": rope: positions i32[L] do not fit f32[B,L,4]: expected shape [B,L]");
}

}  // namespace
}  // namespace lathe::ops
