#include "lathe/train/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lathe/io/testing/refusal.h"

namespace lathe::train {
namespace {

TEST(Schedule, FallsInAStraightLineToNothing) {
  const Schedule schedule{.peak = 1e-3, .decay = Decay::Linear, .num_steps = 4};
  EXPECT_DOUBLE_EQ(schedule.rate(0), 1e-3);
  EXPECT_DOUBLE_EQ(schedule.rate(1), 0.75e-3);
  EXPECT_DOUBLE_EQ(schedule.rate(3), 0.25e-3);
  EXPECT_EQ(schedule.rate(4), 0.0);
  EXPECT_EQ(schedule.rate(5), 0.0);
}

TEST(Schedule, RisesOverTheWarmUpFirst) {
  const Schedule schedule{.peak = 8, .decay = Decay::Linear, .warmup_steps = 2, .num_steps = 6};
  const double expected[] = {0, 4, 8, 6, 4, 2, 0};
  for (std::int64_t step = 0; step <= 6; ++step)
    EXPECT_DOUBLE_EQ(schedule.rate(step), expected[step]) << "step " << step;
}

TEST(Schedule, StaysConstantAfterTheWarmUp) {
  const Schedule schedule{.peak = 2, .decay = Decay::Constant, .warmup_steps = 4, .num_steps = 8};
  EXPECT_EQ(schedule.rate(1), 0.5);
  EXPECT_EQ(schedule.rate(4), 2.0);
  EXPECT_EQ(schedule.rate(7), 2.0);
}

TEST(Schedule, FallsAlongHalfACosine) {
  const Schedule schedule{.peak = 1, .decay = Decay::Cosine, .warmup_steps = 1, .num_steps = 5};
  EXPECT_EQ(schedule.rate(0), 0.0);
  EXPECT_DOUBLE_EQ(schedule.rate(1), 1.0);
  EXPECT_DOUBLE_EQ(schedule.rate(2), 0.5 + std::sqrt(2.0) / 4);
  EXPECT_NEAR(schedule.rate(3), 0.5, 1e-15);
  EXPECT_NEAR(schedule.rate(5), 0.0, 1e-15);
}

TEST(Schedule, BeginsAnewWithEachCycle) {
  const Schedule schedule{
      .peak = 4, .decay = Decay::Linear, .warmup_steps = 1, .num_steps = 9, .cycles = 2};
  EXPECT_EQ(schedule.cycle_steps(), 5);
  const double expected[] = {0, 4, 3, 2, 1, 0, 4, 3, 2, 1, 0};
  for (std::int64_t step = 0; step <= 10; ++step)
    EXPECT_DOUBLE_EQ(schedule.rate(step), expected[step]) << "step " << step;
}

TEST(Schedule, CanWarmUpForTheWholeRun) {
  const Schedule schedule{.peak = 1, .decay = Decay::Linear, .warmup_steps = 4, .num_steps = 4};
  EXPECT_EQ(schedule.rate(3), 0.75);
  EXPECT_EQ(schedule.rate(4), 0.0);
}

TEST(WarmupSteps, AreAShareRoundedUpOrANumberOfSteps) {
  EXPECT_EQ(warmup_steps(0, 100), 0);
  EXPECT_EQ(warmup_steps(0.06, 50), 3);
  EXPECT_EQ(warmup_steps(0.06, 2346), 141);  // 140.76
  EXPECT_EQ(warmup_steps(1, 100), 1);
  EXPECT_EQ(warmup_steps(500, 100), 500);
  EXPECT_EQ(io::refusal("", [] { warmup_steps(-0.1, 10); }),
            "a warm-up of -0.1: expected a share of the steps below 1, or a number of steps");
  EXPECT_EQ(io::refusal("", [] { warmup_steps(1.5, 10); }),
            "a warm-up of 1.5: expected a share of the steps below 1, or a whole number of steps");
}

TEST(ParseDecay, KnowsEveryName) {
  for (const Decay decay : {Decay::Constant, Decay::Linear, Decay::Cosine})
    EXPECT_EQ(parse_decay(name(decay)), decay);
  EXPECT_EQ(io::refusal("", [] { parse_decay("step"); }),
            "unknown schedule \"step\"; known: constant, cosine, linear");
}

}  // namespace
}  // namespace lathe::train
