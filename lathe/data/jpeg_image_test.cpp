#include "lathe/data/jpeg_image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
// libjpeg's header needs what is above.
#include <jpeglib.h>

#include <cstdlib>

#include "lathe/data/dataset.h"
#include "lathe/data/png_image.h"
#include "lathe/data/testing/png_bytes.h"
#include "lathe/data/testing/temporary_directory.h"

namespace lathe::data {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

std::string jpeg(unsigned width, unsigned height, int channels,
                 const std::vector<unsigned char>& pixels, bool is_progressive = false) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &buffer, &size);
  info.image_width = width;
  info.image_height = height;
  info.input_components = channels;
  info.in_color_space = channels == 1 ? JCS_GRAYSCALE : channels == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 100, TRUE);
  if (is_progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  std::vector<unsigned char> copy = pixels;
  while (info.next_scanline < height) {
    JSAMPROW row[] = {copy.data() + info.next_scanline * width * static_cast<unsigned>(channels)};
    jpeg_write_scanlines(&info, row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::string bytes(reinterpret_cast<const char*>(buffer), size);
  std::free(buffer);
  return bytes;
}

std::vector<unsigned char> noise(std::size_t count) {
  std::vector<unsigned char> pixels;
  std::uint32_t random = 3;
  for (std::size_t i = 0; i < count; ++i)
    pixels.push_back(static_cast<unsigned char>((random = random * 1664525u + 1013904223u) >> 24));
  return pixels;
}

// One colour alone has no frequencies to lose: at quality 100 it is off by its rounding to YCbCr.
TEST(JpegImage, PutsOneChannelAfterTheOther) {
  const TemporaryDirectory directory;
  std::vector<unsigned char> pixels;
  for (int i = 0; i < 8; ++i) pixels.insert(pixels.end(), {200, 100, 50});
  const Image image = read_jpeg(directory.write("a.jpg", jpeg(4, 2, 3, pixels)));
  EXPECT_EQ(image.channels, 3);
  EXPECT_EQ(image.height, 2);
  EXPECT_EQ(image.width, 4);
  ASSERT_EQ(image.values.size(), 24u);
  for (std::size_t i = 0; i < 24; ++i)
    EXPECT_NEAR(image.values[i], (i < 8 ? 200 : i < 16 ? 100 : 50) / 255.0, 2 / 255.0) << i;
  const Image grey = read_jpeg(directory.write("b.jpg", jpeg(1, 2, 1, {51, 51})));
  EXPECT_THAT(grey.values, ElementsAre(0.2f, 0.2f));
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

// Cuts and changed bytes give an image or one line that names the file.
TEST(Images, SurviveMutants) {
  const TemporaryDirectory directory;
  const std::vector<unsigned char> pixels = noise(std::size_t{20} * 12 * 3);
  const std::pair<const char*, std::string> sounds[] = {
      {"a.jpg", jpeg(20, 12, 3, pixels)},
      {"b.jpg", jpeg(20, 12, 3, pixels, true)},
      {"c.png", png(20, 12, PNG_FORMAT_RGB, pixels)}};
  for (const auto& [name, sound] : sounds) {
    const auto survives = [&, &file_name = name](const std::string& bytes) {
      const auto file = directory.write(file_name, bytes);
      const std::string error =
          error_of([&] { has_jpeg_ending(file) ? read_jpeg(file) : read_png(file); });
      return error == "no error" || error.find(std::string(file_name) + ": ") != error.npos;
    };
    for (std::size_t length = 0; length < sound.size(); length += 3)
      EXPECT_TRUE(survives(sound.substr(0, length))) << name << " cut at " << length;
    std::uint32_t random = 11;
    const auto next = [&] { return (random = random * 1664525u + 1013904223u) >> 8; };
    for (int mutant = 0; mutant < 400; ++mutant) {
      std::string bytes = sound;
      for (std::uint32_t changes = 1 + next() % 4; changes > 0; --changes)
        bytes[next() % bytes.size()] = static_cast<char>(next());
      EXPECT_TRUE(survives(bytes)) << name << " mutant " << mutant;
    }
  }
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
