#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lathe/ops/test_tensors.h"

namespace lathe::ops {
namespace {

using testing::ElementsAre;
using testing::FloatEq;

TEST(LayerNorm, ScalesARowToUnitVariance) {
  // Mean 3, variance 4: the row becomes -1, -1, 1, 1.
  EXPECT_THAT(
      result_of("layer_norm(f32[1,4], f32[4], f32[4]) {eps=0.0}",
                {f32({1, 4}, {1, 1, 5, 5}), f32({4}, {1, 2, 3, 4}), f32({4}, {0, 0, 0, 9})}),
      ElementsAre(-1, -2, 3, 13));
}

TEST(LayerNorm, AddsEpsToTheVariance) {
  EXPECT_THAT(result_of("layer_norm(f32[1,2], f32[2], f32[2]) {eps=3.0}",
                        {f32({1, 2}, {-1, 1}), f32({2}, {1, 1}), f32({2}, {0, 0})}),
              ElementsAre(-0.5, 0.5));
}

TEST(LayerNorm, RefusesAWeightOfAnotherSize) {
  EXPECT_EQ(refusal_of("layer_norm(f32[T,4], f32[8], f32[4])"),
            "node \"y\": layer_norm needs weight of shape [4], not f32[8]");
}

TEST(RmsNorm, ScalesARowToAMeanSquareOfOne) {
  // The mean square of 1, 7 is 25.
  EXPECT_THAT(
      result_of("rms_norm(f32[1,2], f32[2]) {eps=0.0}", {f32({1, 2}, {1, 7}), f32({2}, {5, 10})}),
      ElementsAre(1, 14));
}

TEST(Softmax, SumsToOneAlongItsAxis) {
  const float third = std::log(3.0f);
  EXPECT_THAT(result_of("softmax(f32[1,2])", {f32({1, 2}, {0, third})}),
              ElementsAre(FloatEq(0.25f), FloatEq(0.75f)));
  EXPECT_THAT(result_of("softmax(f32[2,2]) {axis=0}", {f32({2, 2}, {0, 5, third, 5})}),
              ElementsAre(FloatEq(0.25f), FloatEq(0.5f), FloatEq(0.75f), FloatEq(0.5f)));
}

TEST(Softmax, StaysFiniteForLargeScores) {
  EXPECT_THAT(result_of("softmax(f32[2])", {f32({2}, {3e38f, 3e38f})}), ElementsAre(0.5, 0.5));
}

TEST(LogSoftmax, IsTheLogarithmOfSoftmax) {
  EXPECT_THAT(result_of("log_softmax(f32[2])", {f32({2}, {7, 7})}),
              ElementsAre(FloatEq(-std::log(2.0f)), FloatEq(-std::log(2.0f))));
  EXPECT_EQ(refusal_of("log_softmax(f32[2]) {axis=1}"),
            "node \"y\": log_softmax: f32[2] has no axis 1");
}

TEST(BatchNorm, UsesTheStatisticsOfEachChannel) {
  EXPECT_THAT(result_of("batch_norm(f32[1,2,2], f32[2], f32[2], f32[2], f32[2]) {eps=1.0}",
                        {f32({1, 2, 2}, {5, 7, 1, 2}), f32({2}, {1, 10}), f32({2}, {0, 1}),
                         f32({2}, {3, 0}), f32({2}, {3, 0})}),
              ElementsAre(1, 2, 11, 21));
}

}  // namespace
}  // namespace lathe::ops
