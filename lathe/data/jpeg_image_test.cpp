#include "lathe/data/jpeg_image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/data/dataset.h"
#include "lathe/data/testing/jpeg_bytes.h"
#include "lathe/data/testing/png_bytes.h"
#include "lathe/data/testing/temporary_directory.h"

namespace lathe::data {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

// One colour alone has no frequencies to lose: at quality 100 it is off by its rounding to YCbCr.
TEST(JpegImage, PutsOneChannelAfterTheOther) {
  const TemporaryDirectory directory;
  std::vector<unsigned char> pixels;
  for (int i = 0; i < 8; ++i) pixels.insert(pixels.end(), {200, 100, 50});
  const Image image = read_jpeg(directory.write("a.jpg", jpeg(4, 2, 3, pixels)));
  EXPECT_EQ(image.channels, 3);
  EXPECT_EQ(image.height, 2);
  EXPECT_EQ(image.width, 4);
  ASSERT_EQ(image.bytes.size(), 24u);
  for (std::size_t i = 0; i < 24; ++i)
    EXPECT_NEAR(image.bytes[i], i < 8 ? 200 : i < 16 ? 100 : 50, 2) << i;
  const Image grey = read_jpeg(directory.write("b.jpg", jpeg(1, 2, 1, {51, 51})));
  EXPECT_THAT(grey.bytes, ElementsAre(51, 51));
}

// A JPEG with Exif data that say which way up it is, in either order of bytes.
std::string with_orientation(std::string bytes, char orientation, bool is_little) {
  const std::string exif =
      is_little ? std::string("Exif\0\0II*\0\x8\0\0\0\x1\0\x12\x1\x3\0\x1\0\0\0", 24) +
                      orientation + std::string(7, '\0')
                : std::string("Exif\0\0MM\0*\0\0\0\x8\0\x1\x1\x12\0\x3\0\0\0\x1\0", 25) +
                      orientation + std::string(6, '\0');
  std::string marker("\xff\xe1\0", 3);
  marker += static_cast<char>(exif.size() + 2);
  return bytes.insert(2, marker + exif);
}

// Pixels in a column of two, as Pillow's exif_transpose turns them.
TEST(JpegImage, IsTurnedUpright) {
  const TemporaryDirectory directory;
  const Image stored = read_jpeg(directory.write("a.jpg", jpeg(1, 2, 1, {20, 220})));
  const unsigned char first = stored.bytes[0], last = stored.bytes[1];
  ASSERT_LT(first, last);
  const auto turned = [&](char orientation, bool is_little) {
    return read_jpeg(directory.write(
        "b.jpg", with_orientation(jpeg(1, 2, 1, {20, 220}), orientation, is_little)));
  };
  for (const bool is_little : {false, true}) {
    EXPECT_EQ(turned(1, is_little), stored);
    EXPECT_EQ(turned(3, is_little), (Image{1, 2, 1, {last, first}}));
    EXPECT_EQ(turned(6, is_little), (Image{1, 1, 2, {last, first}}));
    EXPECT_EQ(turned(8, is_little), (Image{1, 1, 2, {first, last}}));
    EXPECT_EQ(turned(99, is_little), stored);
  }
}

TEST(JpegImage, RefusesFourColoursAndWhatIsNone) {
  const TemporaryDirectory directory;
  EXPECT_THAT(error_of([&] {
                read_jpeg(directory.write("a.jpg", jpeg(1, 1, 4, {1, 2, 3, 4})));
              }),
              EndsWith("a.jpg: has 4 colours, expected grey or red, green and blue"));
  EXPECT_THAT(error_of([&] { read_jpeg(directory.write("b.jpg", "GIF89a, for once")); }),
              HasSubstr("b.jpg: is not a sound JPEG: "));
  EXPECT_THAT(error_of([&] { read_jpeg(directory.write("c.jpg", "")); }),
              HasSubstr("c.jpg: is not a sound JPEG: "));
}

TEST(JpegImage, RefusesAHugeImageByItsHeader) {
  const TemporaryDirectory directory;
  std::string bytes = jpeg(8, 8, 1, noise(64));
  const std::size_t frame = bytes.find("\xff\xc0");  // length, bits, then height and width
  ASSERT_NE(frame, bytes.npos);
  bytes.replace(frame + 5, 4, "\x40\x01\x40\x01");
  EXPECT_THAT(error_of([&] { read_jpeg(directory.write("a.jpg", bytes)); }),
              EndsWith("a.jpg: is 16385 by 16385, expected at most 16777216 pixels"));
}

TEST(ImageFolders, HoldJpegsBesidePngs) {
  const TemporaryDirectory directory;
  const std::vector<unsigned char> pixels(std::size_t{8} * 8 * 3, 255);
  directory.write("train/a/1.JPG", jpeg(8, 8, 3, pixels));
  directory.write("train/b/2.png", png(8, 8, PNG_FORMAT_RGB, pixels));
  const Dataset dataset =
      load_dataset(directory.path().string(), "train", {.reads = Reads::Numbers});
  EXPECT_THAT(dataset.labels(), ElementsAre(0, 1));
  EXPECT_THAT(dataset.arrays->shape, ElementsAre(3, 8, 8));
}

}  // namespace
}  // namespace lathe::data
