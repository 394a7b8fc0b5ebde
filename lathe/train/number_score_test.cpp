#include "lathe/train/number_score.h"

#include <gmock/gmock.h>

namespace lathe::train {
namespace {

using testing::ElementsAre;

Answers answers(std::vector<float> values) {
  const auto count = static_cast<std::int64_t>(values.size());
  return {.logits = Tensor::from<float>({count, 1}, std::span<const float>(values))};
}

TEST(NumberScore, GivesTheSquaredErrorAndCorrelations) {
  // Differences 1, 0, -1, 0. Ranks 1, 2.5, 2.5, 4 against 1, 2, 4, 3.
  const NumberScore score =
      score_numbers(answers({1, 2, 2, 3}), std::vector<float>{0, 2, 3, 3 /* tied with the last */});
  EXPECT_DOUBLE_EQ(score.loss, 0.5);
  // Deviations -1 0 0 1 and -2 0 1 1: 3 / sqrt(2 * 6).
  EXPECT_NEAR(*score.pearson, 3 / std::sqrt(12.0), 1e-12);
  // Ranks 1 2.5 2.5 4 and 1 2 3.5 3.5: deviations -1.5 0 0 1.5 and -1.5 -.5 1 1.
  EXPECT_NEAR(*score.spearman, 3.75 / std::sqrt(4.5 * 4.5), 1e-12);
}

TEST(NumberScore, HasNoCorrelationWhereNothingVaries) {
  EXPECT_FALSE(score_numbers(answers({1, 1}), std::vector<float>{0, 2}).pearson);
}

TEST(Ranks, ShareTheirMean) {
  EXPECT_THAT(ranks(std::vector<double>{5, 1, 5, 7}), ElementsAre(2.5, 1, 2.5, 4));
}

}  // namespace
}  // namespace lathe::train
