#include "lathe/data/image_reading.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/core/error.h"
#include "lathe/data/testing/temporary_directory.h"

namespace lathe::data {
namespace {

using testing::ElementsAre;

TEST(ImageReading, IsReadFromTextAndWrittenBack) {
  const std::string text =
      "shortest=256,resample=bicubic,crop=224x192,mean=0.485/0.456/0.406,deviation=0.2";
  const ImageReading reading = parse_image_reading(text);
  EXPECT_EQ(reading.shortest, 256);
  EXPECT_EQ(reading.crop_width, 192);
  EXPECT_EQ(to_text(reading), text);
  EXPECT_EQ(to_text(parse_image_reading("resize=8,colour,white=255")),
            "resize=8x8,colour,white=255");
  EXPECT_EQ(to_text(ImageReading()), "");
}

TEST(ImageReading, ChangesWhatIsGivenOfAnother) {
  const ImageReading base = parse_image_reading("resize=8,mean=0.5");
  EXPECT_EQ(to_text(parse_image_reading("shortest=9", base)), "shortest=9,mean=0.5");
}

TEST(ImageReading, RefusesWhatNoImageCanHave) {
  const auto refusal = [](std::string_view text) {
    return error_of([&] { parse_image_reading(text); });
  };
  EXPECT_EQ(refusal("resize=0"), "resize: 0: expected 1 to 16384 pixels");
  EXPECT_EQ(refusal("resize=4x4x4"), "resize: \"4x4x4\": expected pixels, or ROWSxCOLUMNS");
  EXPECT_EQ(refusal("mean=0.1/0.2"),
            "mean: has 2 numbers, expected 1, or 3 for red, green and blue");
  EXPECT_EQ(refusal("deviation=0"), "deviation 0: expected a number above 0");
  EXPECT_EQ(refusal("mean"), "mean: expected mean=VALUE");
  EXPECT_EQ(refusal("resize=4,crop=5"),
            "crop 5x5: is larger than the 4x4 that images are resized to");
  EXPECT_EQ(refusal("crop=4,crop=3"), "crop is there twice");
  EXPECT_EQ(refusal("shortest=4,resize=3"), "resize and shortest: expected one");
  EXPECT_THAT(refusal("means=1"), testing::StartsWith("unknown setting \"means\""));
}

TEST(ImageReading, BringsTheShorterSideToALengthAndCutsTheMiddle) {
  const Image wide{1, 2, 5, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}};
  const Image larger = prepare(wide, parse_image_reading("shortest=3"));
  EXPECT_EQ(larger.height, 3);
  EXPECT_EQ(larger.width, 7) << "7.5, cut to whole pixels";
  EXPECT_EQ(prepare(wide, parse_image_reading("crop=1x3")), (Image{1, 1, 3, {1, 2, 3}}));
  EXPECT_EQ(error_of([&] { prepare(wide, parse_image_reading("crop=3")); }),
            "is 2 by 5, from which 3 by 3 cannot be cut");
}

TEST(ImageReading, MakesPixelsNumbers) {
  std::vector<float> values;
  const ImageReading reading = parse_image_reading("white=255,mean=5/0/55,deviation=10");
  append_values(values, prepare({1, 1, 1, {55}}, reading), reading);
  EXPECT_THAT(values, ElementsAre(5.0f, 5.5f, 0.0f)) << "three means make a grey image coloured";
  values.clear();
  append_values(values, {1, 1, 3, {0, 51, 255}}, {});
  EXPECT_THAT(values, ElementsAre(0.0f, 0.2f, 1.0f));
}

}  // namespace
}  // namespace lathe::data
