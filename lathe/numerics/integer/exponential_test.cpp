#include "lathe/numerics/integer/exponential.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lathe::numerics {
namespace {

TEST(Exponential, HasATableOfTheNearestIntegers) {
  EXPECT_EQ(kExponentialTable[0], 32767);
  EXPECT_EQ(kExponentialTable[63], 16562);  // 16383.5 * 2^(1/64) = 16561.9
  for (int i = 0; i < kExponentialSteps; ++i)
    EXPECT_EQ(kExponentialTable[static_cast<std::size_t>(i)],
              std::llround(32767.0L * std::exp2(-static_cast<long double>(i) / 64)))
        << i;
}

TEST(Exponential, RoundsAHalfUpWhenItShifts) {
  EXPECT_EQ(exponential(0), 32767);
  EXPECT_EQ(exponential(64), 16384);        // 16383.5
  EXPECT_EQ(exponential(15 * 64), 1);       // 0.99997
  EXPECT_EQ(exponential(15 * 64 + 63), 1);  // 16562 / 32768 = 0.505
  EXPECT_EQ(exponential(16 * 64), 0);
  EXPECT_EQ(exponential(std::int64_t{1} << 60), 0);
}

TEST(Exponential, NeverRises) {
  for (std::int64_t steps = 0; steps < 17 * 64; ++steps)
    EXPECT_GE(exponential(steps), exponential(steps + 1)) << steps;
}

TEST(Exponential, CountsStepsToTheNearest) {
  // 1.5 steps and 2.5 steps: a half goes up.
  EXPECT_EQ(exponential_steps(3, 1, 1), 2);
  EXPECT_EQ(exponential_steps(5, 1, 1), 3);
  EXPECT_EQ(exponential_steps(0, 12345, 7), 0);
}

}  // namespace
}  // namespace lathe::numerics
