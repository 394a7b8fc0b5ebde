#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lathe/ops/test_tensors.h"

namespace lathe::ops {
namespace {

TEST(CrossEntropy, SumsNegativeLogProbabilitiesAndCountsRows) {
  // Probabilities of the labels: 1/4 and 1/2.
  const float third = std::log(3.0f);
  const std::vector<Tensor> results = evaluate("cross_entropy(f32[2,2], i64[2])",
                                               {f32({2, 2}, {0, third, 5, 5}), i64({2}, {0, 1})});
  EXPECT_FLOAT_EQ(static_cast<float>(results[0].at(0)), std::log(8.0f));
  EXPECT_EQ(results[1].at(0), 2);
}

TEST(CrossEntropy, LeavesIgnoredLabelsOut) {
  const Tensor logits = f32({3, 2}, {0, 0, 9, 9, 0, 0});
  const std::vector<Tensor> results =
      evaluate("cross_entropy(f32[3,2], i64[3])", {logits, i64({3}, {0, -100, 1})});
  EXPECT_FLOAT_EQ(static_cast<float>(results[0].at(0)), std::log(4.0f));
  EXPECT_EQ(results[1].at(0), 2);
  const std::vector<Tensor> others =
      evaluate("cross_entropy(f32[3,2], i64[3]) {ignore_index=0}", {logits, i64({3}, {0, 0, 1})});
  EXPECT_FLOAT_EQ(static_cast<float>(others[0].at(0)), std::log(2.0f));
  EXPECT_EQ(others[1].at(0), 1);
}

TEST(CrossEntropy, RefusesALabelOutsideTheClasses) {
  EXPECT_EQ(
      message_of([] {
        evaluate("cross_entropy(f32[2,2], i64[2])", {f32({2, 2}, {0, 0, 0, 0}), i64({2}, {1, 2})});
      }),
      "node \"y\": label 2 at position 1 is outside the 2 classes");
  EXPECT_EQ(refusal_of("cross_entropy(f32[B,L,5], i64[B])"),
            "node \"y\": cross_entropy: labels i64[B] do not fit logits f32[B,L,5]: expected shape "
            "[B,L]");
}

TEST(SquaredError, SumsSquaresAndCountsElements) {
  const std::vector<Tensor> results =
      evaluate("squared_error(f32[3], f32[3])", {f32({3}, {1, 2, 3}), f32({3}, {1, 4, 0})});
  EXPECT_EQ(results[0].at(0), 13);
  EXPECT_EQ(results[1].at(0), 3);
  EXPECT_EQ(refusal_of("squared_error(f32[3], f32[4])"),
            "node \"y\": squared_error: prediction f32[3] and target f32[4] differ in shape");
}

TEST(BinaryCrossEntropy, SumsTheLossOfEverySigmoid) {
  // sigmoid(0) = 1/2 costs log 2 either way; sigmoid(log 3) = 3/4 costs log(4/3) or log 4.
  const float third = std::log(3.0f);
  const std::vector<Tensor> results =
      evaluate("binary_cross_entropy(f32[2,2], f32[2,2])",
               {f32({2, 2}, {0, 0, third, third}), f32({2, 2}, {0, 1, 1, 0})});
  EXPECT_FLOAT_EQ(static_cast<float>(results[0].at(0)),
                  2 * std::log(2.0f) + std::log(4.0f / 3) + std::log(4.0f));
  EXPECT_EQ(results[1].at(0), 4);
  EXPECT_EQ(refusal_of("binary_cross_entropy(f32[3], f32[4])"),
            "node \"y\": binary_cross_entropy: logits f32[3] and targets f32[4] differ in shape");
}

TEST(BinaryCrossEntropy, IsFiniteForLogitsOfAnySize) {
  const std::vector<Tensor> results =
      evaluate("binary_cross_entropy(f32[4], f32[4])",
               {f32({4}, {1e4, -1e4, 1e4, -1e4}), f32({4}, {1, 0, 0, 1})});
  EXPECT_EQ(results[0].at(0), 2e4);
}

TEST(BinaryCrossEntropyGradient, IsTheSigmoidLessTheTarget) {
  const std::vector<Tensor> results =
      evaluate("binary_cross_entropy_gradient(f32[], f32[3], f32[3])",
               {f32({}, {2}), f32({3}, {0, std::log(3.0f), -200}), f32({3}, {1, 0, 0})});
  EXPECT_FLOAT_EQ(static_cast<float>(results[0].at(0)), -1);
  EXPECT_FLOAT_EQ(static_cast<float>(results[0].at(1)), 1.5f);
  EXPECT_FLOAT_EQ(static_cast<float>(results[0].at(2)), 0);
}

}  // namespace
}  // namespace lathe::ops
