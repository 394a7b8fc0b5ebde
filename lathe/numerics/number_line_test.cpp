#include "lathe/numerics/number_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lathe::numerics {
namespace {

using testing::ElementsAre;

TEST(RepresentableNumbers, AreThoseOfE2m1) {
  EXPECT_THAT(representable_numbers(*parse_format("minifloat:e2m1")),
              ElementsAre(-6, -4, -3, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 4, 6));
}

TEST(RepresentableNumbers, AreTheElementsOfABlockAtScaleOne) {
  EXPECT_THAT(representable_numbers(*parse_format("mxint:2")), ElementsAre(-1, 0, 1));
  EXPECT_THAT(representable_numbers(*parse_format("ternary")), ElementsAre(-1, 0, 1));
  EXPECT_THAT(representable_numbers(*parse_format("binary:residual,2")),
              ElementsAre(-1.5, -0.5, 0.5, 1.5));
}

TEST(RepresentableNumbers, AreFoundBySamplingWhereThereAreNoCodes) {
  EXPECT_THAT(representable_numbers(*parse_format("mase.integer:2,0")), ElementsAre(-2, -1, 0, 1));
  EXPECT_EQ(representable_numbers(*parse_format("mase.minifloat_ieee:8,4,bias=7")).size(), 255U)
      << "without what it passes through";
}

TEST(RepresentableNumbers, AreNotListedForWideFormats) {
  EXPECT_THAT(representable_numbers(*parse_format("fixed:32,16")), ElementsAre());
}

}  // namespace
}  // namespace lathe::numerics
