#include "lathe/train/classification_report.h"

#include <gtest/gtest.h>

namespace lathe::train {
namespace {

TEST(ClassScores, AreCountedFromTheConfusionMatrix) {
  const std::vector<ClassScore> scores = class_scores({{3, 1, 0}, {1, 2, 1}, {0, 2, 0}});
  EXPECT_EQ(scores[0].examples, 4);
  EXPECT_EQ(scores[0].predicted, 4);
  EXPECT_EQ(scores[0].f1, 0.75);
  EXPECT_EQ(scores[1].predicted, 5);
  EXPECT_EQ(scores[1].precision, 0.4);
  EXPECT_EQ(scores[1].recall, 0.5);
  EXPECT_DOUBLE_EQ(scores[1].f1, 4.0 / 9);
  EXPECT_EQ(scores[2].f1, 0.0);
  EXPECT_DOUBLE_EQ(macro_f1(scores), (0.75 + 4.0 / 9) / 3);
}

TEST(ClassScores, AreZeroForAClassThatNeverOccurs) {
  const std::vector<ClassScore> scores = class_scores({{5, 0}, {0, 0}});
  EXPECT_EQ(scores[1].precision, 0.0);
  EXPECT_EQ(scores[1].recall, 0.0);
  EXPECT_EQ(scores[1].f1, 0.0);
  EXPECT_EQ(scores[0].f1, 1.0);
}

}  // namespace
}  // namespace lathe::train
