#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/data/dataset.h"
#include "lathe/data/testing/temporary_directory.h"

namespace lathe::data {
namespace {

using testing::ElementsAre;
using testing::EndsWith;

TEST(PlainTexts, AreLinesThatAreNotEmpty) {
  const TemporaryDirectory directory;
  directory.write("test.txt", "one text\r\n\nanother,\twith 1 label\nno end");
  const Dataset dataset = load_dataset(directory.path().string(), "test");
  EXPECT_THAT(dataset.examples, ElementsAre(Example{"one text", kNoLabel},
                                            Example{"another,\twith 1 label", kNoLabel},
                                            Example{"no end", kNoLabel}));
  EXPECT_TRUE(dataset.label_names.empty());
}

TEST(PlainTexts, MayBeOneFile) {
  const TemporaryDirectory directory;
  directory.write("story.txt", "once\n");
  EXPECT_THAT(load_dataset((directory.path() / "story.txt").string(), "train").examples,
              ElementsAre(Example{"once", kNoLabel}));
}

TEST(PlainTexts, MustHoldSomething) {
  const TemporaryDirectory directory;
  directory.write("train.txt", "\n\n");
  EXPECT_THAT(error_of([&] { load_dataset(directory.path().string(), "train"); }),
              EndsWith("train.txt: is empty, expected at least one example"));
}

}  // namespace
}  // namespace lathe::data
