#include "lathe/compress/symmetric_matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lathe::compress {
namespace {

using testing::ElementsAre;

TEST(LowerFactor, TimesItsTransposeIsTheMatrix) {
  // What stands above the diagonal is not read.
  EXPECT_THAT(lower_factor({4, -1, 2, 10}, 2), ElementsAre(2, 0, 1, 3));
}

TEST(Inverse, OfASmallMatrix) {
  // 4 * 10 - 2 * 2 = 36; every factor on the way is exact.
  const std::vector<double> result = inverse({4, 2, 2, 10}, 2);
  EXPECT_DOUBLE_EQ(result[0], 10 / 36.0);
  EXPECT_DOUBLE_EQ(result[1], -2 / 36.0);
  EXPECT_DOUBLE_EQ(result[2], -2 / 36.0);
  EXPECT_DOUBLE_EQ(result[3], 4 / 36.0);
}

}  // namespace
}  // namespace lathe::compress
