#include "lathe/data/written_labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/core/testing/error_text.h"

namespace lathe::data {
namespace {

using testing::ElementsAre;

TEST(WrittenLabels, KeepTheirNumbersOrAreNumberedByName) {
  const NumberedLabels numbers = number_labels({.place = "f", .labels = {"1", "0", "1"}}, nullptr);
  EXPECT_THAT(numbers.numbers, ElementsAre(1, 0, 1));
  EXPECT_THAT(numbers.names, ElementsAre("0", "1"));
  const NumberedLabels names = number_labels({.place = "f", .labels = {"b", "a", "b"}}, nullptr);
  EXPECT_THAT(names.numbers, ElementsAre(1, 0, 1));
  EXPECT_THAT(names.names, ElementsAre("a", "b"));
}

TEST(WrittenLabels, AreNumberedByTheTrainingSplit) {
  const WrittenLabels training{.place = "train", .labels = {"a", "b", "c"}, .is_training = true};
  const NumberedLabels labels = number_labels({.place = "test", .labels = {"c"}}, &training);
  EXPECT_THAT(labels.numbers, ElementsAre(2));
  EXPECT_THAT(labels.names, ElementsAre("a", "b", "c"));
  EXPECT_EQ(error_text([&] { number_labels({.place = "test", .labels = {"d"}}, &training); }),
            "test: label \"d\" does not occur in the training split, whose labels are a, b, c");
  EXPECT_EQ(error_text([&] { number_labels({.place = "test", .labels = {"0"}}, &training); }),
            "test: label \"0\" does not occur in the training split, whose labels are a, b, c");
}

TEST(WrittenLabels, NameTheLineThatIsWrong) {
  EXPECT_EQ(error_text([] {
              number_labels({.place = "f", .labels = {"0", "x"}, .lines = {1, 5}}, nullptr);
            }),
            "f:5: label is \"x\", expected an integer");
}

}  // namespace
}  // namespace lathe::data
