#include "lathe/numerics/round_matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lathe::numerics {
namespace {

using testing::ElementsAre;

TEST(RoundMatrix, GivesValuesBitsAndTheScaleOfTheRange) {
  const std::vector<float> values{-1.0f, 0.3f, 0.5f, 1.0f};
  const RoundedMatrix rounded = round_matrix(*parse_format("int:2"), {values, 1, 4});
  EXPECT_THAT(rounded.scales, ElementsAre(1.0f));
  EXPECT_THAT(rounded.values, ElementsAre(-1.0f, 0.0f, 0.0f, 1.0f));
  EXPECT_THAT(rounded.patterns, ElementsAre(3u, 0u, 0u, 1u));
}

TEST(RoundMatrix, TakesAScaleThatIsGiven) {
  const std::vector<float> values{0.3f, 0.8f};
  const RoundedMatrix rounded =
      round_matrix(*parse_format("int:8"), {values, 1, 2}, {.scale = ScaleAndZero{.scale = 0.25f}});
  EXPECT_THAT(rounded.values, ElementsAre(0.25f, 0.75f));
}

TEST(RoundMatrix, ReadsTheExponentsOfBlocks) {
  const std::vector<float> values(64, 3.0f);
  const RoundedMatrix rounded = round_matrix(*parse_format("mxint:8"), {values, 1, 64});
  ASSERT_EQ(rounded.scales.size(), 2u);
  ASSERT_EQ(rounded.scale_codes.size(), 2u);
  EXPECT_EQ(rounded.scales[0], 2.0f);
  EXPECT_EQ(rounded.scale_codes[0], 128);
}

}  // namespace
}  // namespace lathe::numerics
