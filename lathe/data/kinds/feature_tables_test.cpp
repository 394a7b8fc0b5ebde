#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/data/dataset.h"
#include "lathe/data/testing/temporary_directory.h"

namespace lathe::data {
namespace {

using testing::ElementsAre;
using testing::EndsWith;

Dataset load(const TemporaryDirectory& directory, std::string_view split = "train") {
  return load_dataset(directory.path().string(), split, {.reads = Reads::Numbers});
}

std::string error_of_table(std::string_view contents) {
  const TemporaryDirectory directory;
  directory.write("train.csv", contents);
  return error_of([&] { load(directory); });
}

TEST(FeatureTables, ReadNumbersAndALabelInAnyColumn) {
  const TemporaryDirectory directory;
  directory.write("train.csv",
                  "length,Species,width\r\n5.1,setosa,3.5\r\n\r\n-7e-1, virginica,\"3\"\r\n");
  const Dataset dataset = load(directory);
  EXPECT_THAT(dataset.arrays->shape, ElementsAre(2));
  EXPECT_THAT(dataset.arrays->values, ElementsAre(5.1f, 3.5f, -0.7f, 3.0f));
  EXPECT_THAT(dataset.arrays->row(1), ElementsAre(-0.7f, 3.0f));
  EXPECT_THAT(dataset.examples, ElementsAre(Example{"", 1}, Example{"", 0}));
  EXPECT_THAT(dataset.label_names, ElementsAre(" virginica", "setosa"));
}

TEST(FeatureTables, KeepTheNumbersOfLabels) {
  const TemporaryDirectory directory;
  directory.write("train.csv", "label,x\n2,1\n0,2\n1,3\n");
  directory.write("test.csv", "label,x\n1,1\n");
  EXPECT_THAT(load(directory).labels(), ElementsAre(2, 0, 1));
  EXPECT_THAT(load(directory, "test").label_names, ElementsAre("0", "1", "2"));
}

TEST(FeatureTables, NameLineAndColumnOfWhatIsNoNumber) {
  EXPECT_THAT(error_of_table("a,b,label\n1,2,0\n1,x,0\n"),
              EndsWith("train.csv:3: column \"b\" is \"x\", expected a number"));
  for (const char* const cell : {"", "nan", "inf", "1e99", "1 2", "0x10", "1,5"})
    EXPECT_THAT(
        error_of_table(fmt::format("a,label\n\"{}\",0\n", cell)),
        EndsWith(fmt::format("train.csv:2: column \"a\" is \"{}\", expected a number", cell)));
}

TEST(FeatureTables, RefuseOtherTables) {
  EXPECT_THAT(error_of_table("a,b\n1,2\n"),
              EndsWith("train.csv:1: the header is \"a,b\", expected a column named label, class, "
                       "target or species"));
  EXPECT_THAT(error_of_table("label,class,a\n1,2,3\n"),
              EndsWith("train.csv:1: the header is \"label,class,a\", expected one column named "
                       "label, class, target or species, not 2"));
  EXPECT_THAT(error_of_table("label\n1\n"),
              EndsWith("train.csv:1: the header is \"label\", expected features"));
  EXPECT_THAT(error_of_table("a,label\n1\n"),
              EndsWith("train.csv:2: has 1 fields, but the header has 2"));
  EXPECT_THAT(error_of_table("a,label\n1,\n"), EndsWith("train.csv:2: has an empty label"));
  EXPECT_THAT(error_of_table("a,label\n"),
              EndsWith("train.csv: is empty, expected at least one example"));
}

TEST(FeatureTables, RefuseColumnsThatTheTrainingSplitHasElsewhere) {
  const TemporaryDirectory directory;
  directory.write("train.csv", "a,b,label\n1,2,0\n");
  directory.write("test.csv", "b,a,label\n1,2,0\n");
  EXPECT_THAT(error_of([&] { load(directory, "test"); }),
              EndsWith("test.csv:1: the features are \"b,a\", expected those of the training "
                       "split: \"a,b\""));
}

}  // namespace
}  // namespace lathe::data
