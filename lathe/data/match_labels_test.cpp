#include "lathe/data/match_labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/core/testing/error_text.h"

namespace lathe::data {
namespace {

using testing::ElementsAre;
using Names = std::vector<std::string>;

Dataset with_labels(const Names& names, const std::vector<std::int32_t>& labels) {
  Dataset dataset{.examples = {}, .label_names = names};
  for (const std::int32_t label : labels) dataset.examples.push_back({"", label});
  return dataset;
}

std::vector<std::int32_t> matched(const Names& names, const Names& model,
                                  const std::vector<std::int32_t>& labels) {
  return match_labels(with_labels(names, labels), model).labels();
}

std::string refusal(const Names& names, const Names& model,
                    const std::vector<std::int32_t>& labels) {
  return error_text([&] { matched(names, model, labels); });
}

TEST(MatchLabels, GoesByName) {
  EXPECT_THAT(matched({"bad", "good"}, {"good", "bad"}, {0, 1, 1}), ElementsAre(1, 0, 0));
  EXPECT_EQ(match_labels(with_labels({"bad", "good"}, {0}), {"good", "bad"}).label_names,
            (Names{"good", "bad"}));
}

TEST(MatchLabels, LetsADatasetLackAClass) {
  EXPECT_THAT(matched({"bad", "mixed"}, {"bad", "good", "mixed"}, {0, 1}), ElementsAre(0, 2));
}

TEST(MatchLabels, AsksOnlyForNamesThatOccur) {
  EXPECT_THAT(matched({"bad", "good", "odd"}, {"good", "bad"}, {0, 1}), ElementsAre(1, 0));
}

TEST(MatchLabels, TakesHuggingFacesPlaceholdersForNumbers) {
  EXPECT_THAT(matched({"0", "1"}, {"LABEL_0", "LABEL_1"}, {0, 1}), ElementsAre(0, 1));
  EXPECT_THAT(matched({"0", "1"}, {"LABEL_1", "LABEL_0"}, {0, 1}), ElementsAre(1, 0));
  EXPECT_THAT(matched({"0", "1"}, {"1", "0"}, {0, 1}), ElementsAre(1, 0));
}

TEST(MatchLabels, TakesNumbersForPositionsWhenTheDataHasNoNames) {
  EXPECT_THAT(matched({"0", "1"}, {"NEGATIVE", "POSITIVE"}, {1, 0}), ElementsAre(1, 0));
}

TEST(MatchLabels, LeavesExamplesWithoutALabelAlone) {
  EXPECT_THAT(matched({"0", "1"}, {"1", "0"}, {kNoLabel, 1}), ElementsAre(kNoLabel, 0));
  EXPECT_THAT(matched({}, {"1", "0"}, {kNoLabel}), ElementsAre(kNoLabel));
}

TEST(MatchLabels, RefusesAnythingElse) {
  EXPECT_EQ(refusal({"neg", "pos"}, {"NEGATIVE", "POSITIVE"}, {0, 1}),
            "the labels of the data are neg, pos, but the model's are NEGATIVE, POSITIVE: expected "
            "the same names");
  EXPECT_EQ(refusal({"neg", "pos"}, {"LABEL_0", "LABEL_1"}, {0, 1}),
            "the labels of the data are neg, pos, but the model's are LABEL_0, LABEL_1: expected "
            "the same names");
  EXPECT_EQ(refusal({"0", "1", "2"}, {"bad", "good"}, {0, 2}),
            "the labels of the data are 0, 1, 2, but the model's are bad, good: expected the same "
            "names");
  EXPECT_EQ(refusal({"0", "1"}, {"3", "5"}, {0, 1}),
            "the labels of the data are 0, 1, but the model's are 3, 5: expected the same names");
  EXPECT_EQ(refusal({"0"}, {"a", "a"}, {0}), "the model has a label twice: a, a");
}

}  // namespace
}  // namespace lathe::data
