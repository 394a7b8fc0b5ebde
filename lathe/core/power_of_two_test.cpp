#include <gtest/gtest.h>

#include <cmath>

#include "lathe/core/number_format.h"

namespace lathe {
namespace {

TEST(NearestPowerOfTwo, IsNearestByRatio) {
  EXPECT_EQ(nearest_power_of_two(1.0f), 1.0f);
  EXPECT_EQ(nearest_power_of_two(1.4142135f), 1.0f) << "below the square root of 2";
  EXPECT_EQ(nearest_power_of_two(1.4142137f), 2.0f) << "above it";
  EXPECT_EQ(nearest_power_of_two(-0.3f), 0.25f) << "a scale's sign is left out";
}

TEST(NearestPowerOfTwo, StaysWhereItsInverseIsAFloat) {
  EXPECT_EQ(nearest_power_of_two(0.0f), 0x1p-126f);
  EXPECT_EQ(nearest_power_of_two(0x1p-140f), 0x1p-126f);
  EXPECT_EQ(nearest_power_of_two(std::nanf("")), 0x1p-126f);
  EXPECT_EQ(nearest_power_of_two(0x1.fp127f), 0x1p127f);
  EXPECT_EQ(nearest_power_of_two(INFINITY), 0x1p127f);
}

}  // namespace
}  // namespace lathe
