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

TEST(NormalizeBatch, UsesTheStatisticsOfItsBatch) {
  // One channel with the elements 1 and 3: mean 2, and a mean square of 1 from there, to which 3 is
  // added before the root.
  const std::vector<Tensor> results =
      evaluate("normalize_batch(f32[2,1], f32[1], f32[1]) {eps=3.0}",
               {f32({2, 1}, {1, 3}), f32({1}, {10}), f32({1}, {1})});
  EXPECT_THAT(results[0].data<float>(), ElementsAre(-4, 6));
  EXPECT_THAT(results[1].data<float>(), ElementsAre(2));
  EXPECT_THAT(results[2].data<float>(), ElementsAre(2)) << "estimated: divided by n - 1";
}

// As torch.nn.functional.batch_norm(x, None, None, w, b, training=True, eps=3) gives it for the
// loss of its first element: by hand, with s = 1/2 and h = (-1/2, 1/2).
TEST(NormalizeBatch, HasTheGradientOfStatisticsThatDependOnIt) {
  const std::vector<Tensor> results = evaluate(
      "normalize_batch_gradient(f32[2,1], f32[2,1], f32[1], f32[1], f32[1]) {eps=3.0}",
      {f32({2, 1}, {1, 0}), f32({2, 1}, {1, 3}), f32({1}, {10}), f32({1}, {2}), f32({1}, {2})});
  EXPECT_THAT(results[0].data<float>(), ElementsAre(1.875f, -1.875f));
  EXPECT_THAT(results[1].data<float>(), ElementsAre(-0.5f));
  EXPECT_THAT(results[2].data<float>(), ElementsAre(1));
}

TEST(NormalizeBatch, NeedsTwoElementsOfAChannel) {
  EXPECT_EQ(message_of([] {
              evaluate("normalize_batch(f32[1,1], f32[1], f32[1])",
                       {f32({1, 1}, {1}), f32({1}, {1}), f32({1}, {1})});
            }),
            "node \"y\": normalize_batch: one element a channel has no variance: expected more");
}

TEST(RunningAverage, MovesATenthOfTheWay) {
  EXPECT_THAT(result_of("running_average(f32[2], f32[2], f32[])",
                        {f32({2}, {0, 1}), f32({2}, {10, 1}), f32({}, {0.5})}),
              ElementsAre(1, 1));
}

TEST(RunningAverage, StaysWhereAStepFailed) {
  EXPECT_THAT(result_of("running_average(f32[1], f32[1], f32[])",
                        {f32({1}, {3}), f32({1}, {NAN}), f32({}, {NAN})}),
              ElementsAre(3));
}

// f = 6 / sqrt(5 + 4) = 2.
TEST(FoldedNorm, ScalesRowsAndShiftsTheBias) {
  EXPECT_THAT(result_of("folded_weight(f32[1,2], f32[1], f32[1]) {eps=4.0}",
                        {f32({1, 2}, {1, -3}), f32({1}, {6}), f32({1}, {5})}),
              ElementsAre(2, -6));
  EXPECT_THAT(
      result_of("folded_bias(f32[1], f32[1], f32[1], f32[1], f32[1]) {eps=4.0}",
                {f32({1}, {6}), f32({1}, {10}), f32({1}, {1}), f32({1}, {5}), f32({1}, {4})}),
      ElementsAre(16));
  EXPECT_THAT(result_of("folded_bias(f32[1], f32[1], f32[1], f32[1]) {eps=4.0}",
                        {f32({1}, {6}), f32({1}, {10}), f32({1}, {1}), f32({1}, {5})}),
              ElementsAre(8));
}

}  // namespace
}  // namespace lathe::ops
