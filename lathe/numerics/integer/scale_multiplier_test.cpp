#include "lathe/numerics/integer/scale_multiplier.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lathe/core/error.h"

namespace lathe::numerics {
namespace {

TEST(ScaleMultiplier, IsAShiftAloneForAPowerOfTwo) {
  for (const int exponent : {-40, -3, 0, 5}) {
    const std::vector<double> ratio{std::ldexp(1.0, exponent)};
    EXPECT_EQ(multipliers_of(ratio, 17).multipliers, std::vector<std::int64_t>{1});
    EXPECT_EQ(multipliers_of(ratio, 17).shift, -exponent);
  }
}

TEST(ScaleMultiplier, KeepsExactRatiosOfPowersOfTwoBetweenChannels) {
  const std::vector<double> ratios{0.25, 0.5, 2.0};
  const ScaleMultipliers result = multipliers_of(ratios, 17);
  EXPECT_EQ(result.multipliers, (std::vector<std::int64_t>{1, 2, 8}));
  EXPECT_EQ(result.shift, 2);
}

TEST(ScaleMultiplier, GivesTheLargestRatioAllTheBits) {
  const std::vector<double> ratios{0.001, 0.3};
  const ScaleMultipliers result = multipliers_of(ratios, 17);
  EXPECT_GE(result.multipliers[1], 1 << 16);
  EXPECT_LT(result.multipliers[1], 1 << 17);
  for (std::size_t i = 0; i < ratios.size(); ++i)
    EXPECT_LE(
        std::fabs(std::ldexp(ratios[i], result.shift) - static_cast<double>(result.multipliers[i])),
        0.5);
}

TEST(ScaleMultiplier, DoesNotOverflowWhenTheLargestRoundsUp) {
  // 1 - 2^-20 rounds to 2^17 / 2^17 at first.
  const std::vector<double> ratio{1 - std::ldexp(1.0, -20)};
  const ScaleMultipliers result = multipliers_of(ratio, 17);
  EXPECT_EQ(result.multipliers, std::vector<std::int64_t>{1});
  EXPECT_EQ(result.shift, 0);
}

TEST(ScaleMultiplier, RefusesWhatIsNoPositiveNumber) {
  EXPECT_THROW(multipliers_of(std::vector<double>{0.0}, 17), UserError);
  EXPECT_THROW(multipliers_of(std::vector<double>{NAN}, 17), UserError);
}

}  // namespace
}  // namespace lathe::numerics
