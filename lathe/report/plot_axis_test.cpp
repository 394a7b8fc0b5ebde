#include "lathe/report/plot_axis.h"

#include <gtest/gtest.h>

namespace lathe::report {
namespace {

std::string ticks(const AxisScale& scale) {
  std::string text;
  for (const double tick : scale.ticks) text += (text.empty() ? "" : " ") + scale.tick_text(tick);
  return text;
}

TEST(LinearScale, PutsTicksOnRoundNumbers) {
  EXPECT_EQ(ticks(linear_scale(0, 10, 5)), "0 2 4 6 8 10");
  EXPECT_EQ(ticks(linear_scale(0.13, 0.87, 5)), "0 0.2 0.4 0.6 0.8 1");
  EXPECT_EQ(ticks(linear_scale(-0.3, 0.3, 6)), "-0.3 -0.2 -0.1 0 0.1 0.2 0.3");
  EXPECT_EQ(ticks(linear_scale(0, 25000, 5)), "0 5000 10000 15000 20000 25000");
}

TEST(LinearScale, KeepsItsEndsWhenNotRoundedOutwards) {
  const AxisScale scale = linear_scale(0.5, 9.5, 5, false);
  EXPECT_EQ(scale.low, 0.5);
  EXPECT_EQ(scale.high, 9.5);
  EXPECT_EQ(ticks(scale), "2 4 6 8");
}

TEST(LinearScale, MakesRoomAroundASingleValue) {
  const AxisScale scale = linear_scale(3, 3, 5);
  EXPECT_LT(scale.low, 3);
  EXPECT_GT(scale.high, 3);
  EXPECT_EQ(linear_scale(0, 0, 4).position(0), 0.5);
}

TEST(LinearScale, SurvivesExtremeRanges) {
  EXPECT_LE(linear_scale(-1e300, 1e300, 5).ticks.size(), 10u);
  EXPECT_LE(linear_scale(1e-300, 2e-300, 5).ticks.size(), 10u);
  EXPECT_LE(linear_scale(1e16, 1e16 + 2, 5).ticks.size(), 10u);
}

TEST(LogarithmicScale, PutsTicksOnPowersOfTen) {
  EXPECT_EQ(ticks(logarithmic_scale(1e-5, 0.1, 6)), "1e-5 0.0001 0.001 0.01 0.1");
  EXPECT_EQ(ticks(logarithmic_scale(3, 40, 6)), "2 5 10 20 50");
  EXPECT_LE(logarithmic_scale(1e-300, 1e300, 6).ticks.size(), 8u);
}

TEST(LogarithmicScale, PlacesValuesByTheirLogarithm) {
  EXPECT_NEAR(logarithmic_scale(1, 10000, 5).position(100), 0.5, 1e-12);
}

TEST(ShortNumber, HasNoIdleZeros) {
  EXPECT_EQ(short_number(0.05), "0.05");
  EXPECT_EQ(short_number(1200), "1200");
  EXPECT_EQ(short_number(0.123456), "0.1235");
  EXPECT_EQ(short_number(1e-12), "1e-12");
  EXPECT_EQ(short_number(2.5e9), "2.5e9");
  EXPECT_EQ(short_number(-0.5), "-0.5");
}

}  // namespace
}  // namespace lathe::report
