#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/data/dataset.h"
#include "lathe/data/testing/temporary_directory.h"

namespace lathe::data {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using namespace std::string_literals;

// Two images of 1 by 3 pixels.
const std::string kImages =
    "\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x03"s + "\0\x33\xff"s + "\xff\0\0"s;
const std::string kLabels = "\0\0\x08\x01\0\0\0\x02"s + "\x01\0"s;

Dataset load(const TemporaryDirectory& directory, std::string_view split) {
  return load_dataset(directory.path().string(), split, {.reads = Reads::Numbers});
}

std::string error_of_files(const std::string& images, const std::string& labels) {
  const TemporaryDirectory directory;
  directory.write("train-images-idx3-ubyte", images);
  directory.write("train-labels-idx1-ubyte", labels);
  return error_of([&] { load(directory, "train"); });
}

TEST(IdxFiles, ReadPixelsFromZeroToOne) {
  const TemporaryDirectory directory;
  directory.write("train-images-idx3-ubyte", kImages);
  directory.write("train-labels-idx1-ubyte", kLabels);
  const Dataset dataset = load(directory, "train");
  EXPECT_THAT(dataset.arrays->shape, ElementsAre(1, 1, 3));
  EXPECT_THAT(dataset.arrays->values, ElementsAre(0.0f, 0.2f, 1.0f, 1.0f, 0.0f, 0.0f));
  EXPECT_THAT(dataset.labels(), ElementsAre(1, 0));
  EXPECT_THAT(dataset.label_names, ElementsAre("0", "1"));
}

TEST(IdxFiles, KnowTheTestSplitBySizeAndItsLabelsByTheTrainingSplit) {
  const TemporaryDirectory directory;
  directory.write("train-images-idx3-ubyte", kImages);
  directory.write("train-labels-idx1-ubyte", kLabels);
  directory.write("t10k-images-idx3-ubyte", "\0\0\x08\x03\0\0\0\x01\0\0\0\x01\0\0\0\x03"s + "abc");
  directory.write("t10k-labels-idx1-ubyte", "\0\0\x08\x01\0\0\0\x01\0"s);
  EXPECT_THAT(load(directory, "test").label_names, ElementsAre("0", "1"));
  EXPECT_FALSE(has_split(directory.path().string(), "validation", {.reads = Reads::Numbers}));
}

TEST(IdxFiles, RefuseEveryTruncation) {
  for (std::size_t length = 0; length < kImages.size(); ++length)
    EXPECT_THAT(
        error_of_files(kImages.substr(0, length), kLabels),
        testing::HasSubstr(fmt::format("train-images-idx3-ubyte: is {} bytes long", length)));
  for (std::size_t length = 0; length < kLabels.size(); ++length)
    EXPECT_THAT(
        error_of_files(kImages, kLabels.substr(0, length)),
        testing::HasSubstr(fmt::format("train-labels-idx1-ubyte: is {} bytes long", length)));
}

TEST(IdxFiles, RefuseHeadersThatDoNotFit) {
  EXPECT_THAT(error_of_files(kImages + "x", kLabels),
              EndsWith("train-images-idx3-ubyte: is 23 bytes long, but its header says 22: 2 items "
                       "of 3 bytes"));
  EXPECT_THAT(error_of_files(kLabels + kLabels, kLabels),
              EndsWith("train-images-idx3-ubyte: begins with 2049, expected 2051, the number of an "
                       "idx file of bytes in 3 dimensions"));
  EXPECT_THAT(
      error_of_files("\0\0\x08\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"s, kLabels),
      EndsWith("says that an image is 4294967295 by 4294967295, expected 1 to 16777216 "
               "pixels"));
  EXPECT_THAT(error_of_files(kImages, "\0\0\x08\x01\0\0\0\x01\0"s),
              EndsWith("train-labels-idx1-ubyte: has 1 labels, but train-images-idx3-ubyte has 2 "
                       "images"));
  EXPECT_THAT(error_of_files("\0\0\x08\x03\0\0\0\0\0\0\0\x01\0\0\0\x03"s, kLabels),
              EndsWith("train-images-idx3-ubyte: is empty, expected at least one example"));
}

TEST(IdxFiles, NeedImagesAndLabels) {
  const TemporaryDirectory directory;
  directory.write("train-images-idx3-ubyte", kImages);
  EXPECT_THAT(error_of([&] { load(directory, "train"); }),
              EndsWith(": has train-images-idx3-ubyte, but not the labels that belong to it"));
}

TEST(IdxFiles, ReadMnist) {
  const std::string mnist = std::string(LATHE_SHARED_DIR) + "/data/mnist-t10k";
  if (!std::filesystem::exists(mnist)) GTEST_SKIP() << "needs " << mnist;
  const Dataset test = load_dataset(mnist, "test", {.reads = Reads::Numbers});
  EXPECT_EQ(test.examples.size(), 10'000u);
  EXPECT_THAT(test.arrays->shape, ElementsAre(1, 28, 28));
  EXPECT_EQ(test.num_labels(), 10);
  EXPECT_EQ(test.examples[0].label, 7);
}

}  // namespace
}  // namespace lathe::data
