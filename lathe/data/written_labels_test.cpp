#include "lathe/data/written_labels.h"

#include <gmock/gmock.h>

#include "lathe/core/testing/error_text.h"

namespace lathe::data {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Dataset labelled(const WrittenLabels& written, const WrittenLabels* training = nullptr,
                 std::optional<LabelKind> kind = {}) {
  Dataset dataset;
  dataset.examples.resize(written.labels.size());
  set_labels(dataset, written, training, kind);
  return dataset;
}

TEST(SetLabels, NumbersClassesInTheOrderOfTheirNames) {
  const Dataset words = labelled({.place = "f", .labels = {"b", "a", "b"}});
  EXPECT_THAT(words.labels(), ElementsAre(1, 0, 1));
  EXPECT_THAT(words.label_names, ElementsAre("a", "b"));
  const Dataset stars = labelled({.place = "f", .labels = {"5", "1", "10", "5"}});
  EXPECT_THAT(stars.labels(), ElementsAre(1, 0, 2, 1));
  EXPECT_THAT(stars.label_names, ElementsAre("1", "5", "10"));
  const Dataset signs = labelled({.place = "f", .labels = {"1", "-1", "+1", "1.0"}});
  EXPECT_THAT(signs.labels(), ElementsAre(1, 0, 1, 1));
  EXPECT_THAT(signs.label_names, ElementsAre("-1", "1"));
}

TEST(SetLabels, TakesLabelsWithAFractionForNumbers) {
  const Dataset numbers = labelled({.place = "f", .labels = {"0.5", "-2", "1e1"}});
  EXPECT_EQ(numbers.label_kind, LabelKind::Number);
  EXPECT_THAT(numbers.targets, ElementsAre(0.5f, -2, 10));
  EXPECT_THAT(numbers.label_names, IsEmpty());
  EXPECT_THAT(labelled({.place = "f", .labels = {"1", "2"}}, nullptr, LabelKind::Number).targets,
              ElementsAre(1, 2));
}

TEST(SetLabels, MakesColumnsOfLists) {
  const WrittenLabels written{.place = "f",
                              .labels = {"b\x1f"
                                         "a",
                                         "", "c"},
                              .are_lists = true};
  const Dataset sets = labelled(written);
  EXPECT_EQ(sets.label_kind, LabelKind::Set);
  EXPECT_THAT(sets.label_names, ElementsAre("a", "b", "c"));
  EXPECT_THAT(sets.targets, ElementsAre(1, 1, 0, 0, 0, 0, 0, 0, 1));
}

TEST(SetLabels, GoesByTheTrainingSplit) {
  const WrittenLabels training{.place = "train", .labels = {"a", "b", "c"}};
  const Dataset test = labelled({.place = "test", .labels = {"c"}}, &training);
  EXPECT_THAT(test.labels(), ElementsAre(2));
  EXPECT_THAT(test.label_names, ElementsAre("a", "b", "c"));
  EXPECT_EQ(
      error_text([&] { labelled({.place = "test", .labels = {"d"}, .lines = {7}}, &training); }),
      "test:7: label \"d\" does not occur in the training split, whose labels are a, b, c");
  const WrittenLabels numbers{.place = "train", .labels = {"0.5", "1"}};
  EXPECT_EQ(labelled({.place = "test", .labels = {"1"}}, &numbers).label_kind, LabelKind::Number);
  EXPECT_EQ(error_text([&] { labelled({.place = "test", .labels = {"x"}}, &numbers); }),
            "test: label is \"x\", expected a number");
}

TEST(SetLabels, TakesNoTextsForLabels) {
  WrittenLabels written{.place = "train.tsv"};
  for (int i = 0; i < 30; ++i) written.labels.push_back(fmt::format("a film {}", i));
  EXPECT_EQ(error_text([&] { labelled(written); }),
            "train.tsv: 30 rows have 30 different labels, \"a film 0\" in the first: are they "
            "labels?\nhint: say which column holds the labels: label-column NAME");
  for (int i = 0; i < 10; ++i) written.labels.push_back("a film 0");
  EXPECT_EQ(labelled(written).label_names.size(), 30);
  EXPECT_THAT(error_text([&] { labelled({.place = "test.tsv", .labels = {"b"}}, &written); }),
              testing::EndsWith("a film 25, a film 26, ... (30 in all)"));
}

TEST(SetLabels, RefusesLabelsThatAreNotUtf8) {
  EXPECT_EQ(error_text([] {
              labelled({.place = "t.csv", .labels = {"x", "caf\xe9"}, .lines = {2, 3}});
            }),
            "t.csv:3: label \"caf\\xe9\" is not UTF-8");
  const WrittenLabels training{.place = "train", .labels = {"\xff"}};
  EXPECT_EQ(error_text([&] { labelled({.place = "test", .labels = {"a"}}, &training); }),
            "train: label \"\\xff\" is not UTF-8");
}

TEST(SetLabels, RefusesAWordAmongNumbers) {
  EXPECT_EQ(error_text([] {
              labelled({.place = "f", .labels = {"0", "x"}, .lines = {1, 5}});
            }),
            "f:5: label is \"x\", but the first one is \"0\": expected numbers alone");
}

}  // namespace
}  // namespace lathe::data
