#include "lathe/data/resize_image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lathe::data {
namespace {

using testing::Each;
using testing::ElementsAre;

Image row(std::vector<unsigned char> bytes) {
  const auto width = static_cast<std::int64_t>(bytes.size());
  return {1, 1, width, std::move(bytes)};
}

// Of four pixels each reaches half a step: at the ends three of them, weighed 3, 3 and 1.
TEST(Resize, WeighsByATriangleTwiceAsWideForHalfTheSize) {
  EXPECT_THAT(resize(row({0, 70, 140, 210}), 1, 2, Resample::Bilinear).bytes, ElementsAre(50, 160));
}

TEST(Resize, InterpolatesBetweenTheMiddlesOfPixels) {
  EXPECT_THAT(resize(row({0, 100}), 1, 4, Resample::Bilinear).bytes, ElementsAre(0, 25, 75, 100));
}

TEST(Resize, TakesTheNearestPixelOrTheMeanOfABox) {
  EXPECT_THAT(resize(row({1, 2, 3, 4}), 1, 2, Resample::Nearest).bytes, ElementsAre(2, 4));
  EXPECT_THAT(resize(row({10, 20, 30, 40}), 1, 2, Resample::Box).bytes, ElementsAre(15, 35));
}

TEST(Resize, ClipsWhatACubicOvershoots) {
  const Image wide = resize(row({0, 0, 255, 255}), 1, 16, Resample::Bicubic);
  EXPECT_EQ(wide.bytes[4], 0);
  EXPECT_EQ(wide.bytes[11], 255);
}

TEST(Resize, KeepsChannelsApartAndOneColourAsItIs) {
  Image image{3, 2, 2, {9, 9, 9, 9, 80, 80, 80, 80, 250, 250, 250, 250}};
  for (const Resample way : {Resample::Nearest, Resample::Lanczos, Resample::Bilinear,
                             Resample::Bicubic, Resample::Box}) {
    const Image larger = resize(image, 3, 5, way);
    ASSERT_EQ(larger.bytes.size(), 45u);
    EXPECT_THAT(std::vector(larger.bytes.begin(), larger.bytes.begin() + 15), Each(9)) << name(way);
    EXPECT_THAT(std::vector(larger.bytes.begin() + 30, larger.bytes.end()), Each(250)) << name(way);
  }
}

TEST(Resize, LeavesAnImageOfTheSameSizeAlone) {
  EXPECT_EQ(resize(row({1, 200, 3}), 1, 3, Resample::Lanczos), row({1, 200, 3}));
}

}  // namespace
}  // namespace lathe::data
