#include "lathe/train/label_set_score.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lathe::train {
namespace {

TEST(LabelSetScore, CountsLabelsTogetherAndEachAlone) {
  // Given: {a, b}, {}, {a}. True: {a}, {b}, {a}.
  const Answers answers{.logits = Tensor::from<float>({3, 2}, {1, 1, -1, -1, 1, -1})};
  const LabelSetScore score = score_label_sets(answers, std::vector<float>{1, 0, 0, 1, 1, 0});
  EXPECT_DOUBLE_EQ(score.labels[0].f1, 1);  // a: twice right
  EXPECT_DOUBLE_EQ(score.labels[1].f1, 0);  // b: given once and true once, elsewhere
  EXPECT_DOUBLE_EQ(score.macro_f1, 0.5);
  EXPECT_DOUBLE_EQ(score.micro_f1, 2 * 2 / 6.0);  // 2 right, 3 given, 3 true
  EXPECT_DOUBLE_EQ(score.exact, 1 / 3.0);
  // Four times log(1 + 1/e), twice log(1 + e).
  EXPECT_NEAR(score.loss, (4 * std::log1p(std::exp(-1)) + 2 * std::log1p(std::exp(1))) / 6, 1e-12);
}

}  // namespace
}  // namespace lathe::train
