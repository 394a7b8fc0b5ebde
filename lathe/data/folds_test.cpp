#include "lathe/data/folds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "lathe/data/dataset.h"
#include "lathe/data/testing/temporary_directory.h"

namespace lathe::data {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

TEST(ParseFolds, ReadsWhatANameEndsWith) {
  EXPECT_EQ(parse_folds("a/b@2/5"), (FoldedData{"a/b", 2, 5}));
  for (const char* other : {"a/b", "a@b/5", "a@2", "a@2/", "a@/5", "a@2/5/c", ""})
    EXPECT_EQ(parse_folds(other), std::nullopt) << other;
  EXPECT_EQ(error_of([] { parse_folds("m@6/5"); }),
            "m@6/5: there is no fold 6 of 5: expected 1 to 5");
  EXPECT_NE(error_of([] { parse_folds("m@0/5"); }), "no error");
  EXPECT_NE(error_of([] { parse_folds("m@1/1"); }), "no error");
}

TEST(AssignFolds, GivesEachFoldItsShareOfEveryLabel) {
  std::vector<std::int32_t> labels;
  for (int i = 0; i < 103; ++i) labels.push_back(i % 10 == 0 ? 1 : 0);
  const std::vector<std::int64_t> folds = assign_folds(labels, 5);
  std::map<std::int64_t, int> sizes, rare;
  for (std::size_t i = 0; i < folds.size(); ++i) {
    ++sizes[folds[i]];
    rare[folds[i]] += labels[i];
  }
  for (std::int64_t fold = 1; fold <= 5; ++fold) {
    EXPECT_NEAR(sizes[fold], 103 / 5.0, 1);
    EXPECT_NEAR(rare[fold], 11 / 5.0, 1);
  }
  EXPECT_EQ(folds, assign_folds(labels, 5));
}

TEST(Folds, CutTheOneSplitThatThereIs) {
  const TemporaryDirectory directory;
  directory.write("test.csv", "text,label\na,x\nb,y\nc,x\nd,y\n");
  std::vector<std::string> tested;
  for (const char* fold : {"@1/2", "@2/2"}) {
    const std::string spec = directory.path().string() + fold;
    EXPECT_TRUE(has_split(spec, "train") && has_split(spec, "test"));
    EXPECT_FALSE(has_split(spec, "validation"));
    const Dataset train = load_dataset(spec, "train"), test = load_dataset(spec, "test");
    EXPECT_EQ(train.examples.size(), 2u);
    EXPECT_THAT(test.label_names, ElementsAre("x", "y"));
    EXPECT_THAT(test.labels(), UnorderedElementsAre(0, 1));
    for (const Example& example : test.examples) tested.push_back(example.text);
    for (const Example& a : train.examples)
      for (const Example& b : test.examples) EXPECT_NE(a.text, b.text);
  }
  EXPECT_THAT(tested, UnorderedElementsAre("a", "b", "c", "d"));
}

TEST(Folds, HaveNoOtherSplits) {
  const TemporaryDirectory directory;
  directory.write("train.csv", "text,label\na,x\nb,y\n");
  const std::string spec = directory.path().string() + "@1/2";
  EXPECT_EQ(error_of([&] { load_dataset(spec, "validation"); }),
            spec + ": has the splits train and test alone, not \"validation\"");
}

}  // namespace
}  // namespace lathe::data
