#include "lathe/data/validation_split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "lathe/data/testing/temporary_directory.h"

namespace lathe::data {
namespace {

using testing::ElementsAre;

TEST(ValidationSplit, TakesEachLabelInItsShare) {
  std::vector<std::int32_t> labels(90, 0);
  labels.insert(labels.end(), 30, 1);
  const ValidationSplit split = split_validation(labels, 12, 1);
  ASSERT_EQ(split.validation.size(), 12u);
  EXPECT_EQ(std::count_if(split.validation.begin(), split.validation.end(),
                          [](std::int64_t i) { return i >= 90; }),
            3);
}

TEST(ValidationSplit, SharesOutWhatRoundingLeaves) {
  // Shares of 2 out of {3, 2, 2} are 6/7, 4/7, 4/7: one for label 0, then one for label 1.
  const std::vector<std::int32_t> labels = {0, 0, 0, 1, 1, 2, 2};
  const ValidationSplit split = split_validation(labels, 2, 5);
  ASSERT_EQ(split.validation.size(), 2u);
  EXPECT_LT(split.validation[0], 3);
  EXPECT_THAT(split.validation[1], testing::AnyOf(3, 4));
}

TEST(ValidationSplit, CoversEachExampleOnceAndRepeatsFromItsSeed) {
  const std::vector<std::int32_t> labels = {0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1};
  const ValidationSplit split = split_validation(labels, 4, 7);
  std::vector<std::int64_t> all = split.train;
  all.insert(all.end(), split.validation.begin(), split.validation.end());
  std::sort(all.begin(), all.end());
  EXPECT_THAT(all, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
  EXPECT_EQ(split_validation(labels, 4, 7), split);
  EXPECT_NE(split_validation(labels, 4, 8), split);
}

TEST(ValidationSplit, RefusesToLeaveNothingToTrainOn) {
  const std::vector<std::int32_t> labels = {0, 1};
  EXPECT_EQ(error_of([&] { split_validation(labels, 2, 1); }),
            "cannot hold out 2 of 2 examples for validation, expected at least one to train on");
}

TEST(ValidationSplit, SelectsExamplesByPosition) {
  const Dataset dataset{{{"a", 0}, {"b", 1}, {"c", 0}}, {"no", "yes"}};
  EXPECT_EQ(select(dataset, std::vector<std::int64_t>{2, 1}),
            (Dataset{{{"c", 0}, {"b", 1}}, {"no", "yes"}}));
}

TEST(ValidationSplit, SelectsTheNumbersOfExamplesToo) {
  const Dataset dataset{
      {{"", 0}, {"", 1}, {"", 0}}, {"no", "yes"}, Arrays{{2}, {1, 2, 3, 4, 5, 6}}};
  EXPECT_EQ(select(dataset, std::vector<std::int64_t>{2, 1}),
            (Dataset{{{"", 0}, {"", 1}}, {"no", "yes"}, Arrays{{2}, {5, 6, 3, 4}}}));
  EXPECT_EQ(take_some(dataset, 1).arrays->values.size(), 2u);
}

TEST(ValidationSplit, TakesSomeOfEachLabel) {
  const Dataset all{{{"a", 0}, {"b", 0}, {"c", 1}, {"d", 1}}, {"no", "yes"}};
  const Dataset some = take_some(all, 2);
  ASSERT_EQ(some.examples.size(), 2u);
  EXPECT_EQ(some.examples[0].label, 0);
  EXPECT_EQ(some.examples[1].label, 1);
  EXPECT_EQ(take_some(all, 0), all);
  EXPECT_EQ(take_some(all, 9), all);
}

}  // namespace
}  // namespace lathe::data
