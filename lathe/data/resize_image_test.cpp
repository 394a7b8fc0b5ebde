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

// Computed by Pillow 12.3 of an image of 7 by 5 pixels whose i-th is 37 i + 11 i^2, modulo 256.
TEST(Resize, AgreesWithPillow) {
  Image image{1, 5, 7, {}};
  for (int i = 0; i < 35; ++i)
    image.bytes.push_back(static_cast<unsigned char>((i * 37 + i * i * 11) % 256));
  const auto smaller = [&](Resample way) { return resize(image, 3, 4, way).bytes; };
  EXPECT_THAT(smaller(Resample::Nearest),
              ElementsAre(0, 118, 68, 106, 114, 80, 134, 20, 188, 2, 160, 150));
  EXPECT_THAT(smaller(Resample::Lanczos),
              ElementsAre(48, 177, 179, 136, 183, 151, 160, 71, 187, 51, 149, 138));
  EXPECT_THAT(smaller(Resample::Bilinear),
              ElementsAre(68, 162, 165, 139, 167, 143, 153, 81, 180, 73, 146, 138));
  EXPECT_THAT(smaller(Resample::Bicubic),
              ElementsAre(56, 171, 172, 138, 176, 147, 158, 73, 188, 61, 148, 139));
  EXPECT_THAT(smaller(Resample::Box),
              ElementsAre(78, 180, 135, 146, 164, 152, 134, 43, 194, 68, 140, 140));
  EXPECT_THAT(resize(image, 6, 10, Resample::Bicubic).bytes,
              testing::ElementsAreArray(
                  {0,   17,  56,  111, 194, 166, 64,  178, 168, 103, 8,   111, 204, 190, 192,
                   185, 178, 240, 157, 41,  63,  162, 218, 137, 195, 213, 166, 140, 73,  14,
                   174, 216, 198, 49,  114, 151, 121, 119, 73,  24,  249, 235, 169, 11,  42,
                   95,  131, 196, 150, 74,  192, 134, 50,  0,   140, 206, 160, 144, 146, 154}));
}

TEST(Resize, LeavesAnImageOfTheSameSizeAlone) {
  EXPECT_EQ(resize(row({1, 200, 3}), 1, 3, Resample::Lanczos), row({1, 200, 3}));
}

}  // namespace
}  // namespace lathe::data
