#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "lathe/data/dataset.h"
#include "lathe/data/image_file.h"
#include "lathe/data/testing/jpeg_bytes.h"
#include "lathe/data/testing/png_bytes.h"
#include "lathe/data/testing/temporary_directory.h"

// Files of images that are damaged at random give an image or one line that names them.
// LATHE_IMAGE_MUTANTS says how many of them there are; the default suits every day.
namespace lathe::data {
namespace {

int num_mutants() {
  const char* const text = std::getenv("LATHE_IMAGE_MUTANTS");
  return text != nullptr ? std::atoi(text) : 600;
}

// A file with some of its bytes changed, and now and then cut or with some of them left out.
std::string mutant(std::string bytes, std::mt19937& random) {
  for (unsigned changes = 1 + random() % 4; changes > 0; --changes)
    bytes[random() % bytes.size()] = static_cast<char>(random());
  if (random() % 8 == 0) bytes.resize(random() % bytes.size());
  if (bytes.size() > 8 && random() % 8 == 0) bytes.erase(random() % bytes.size(), 1 + random() % 8);
  return bytes;
}

struct Sound {
  const char* name;
  std::string bytes;
};

std::vector<Sound> sound_images() {
  const std::vector<unsigned char> pixels = noise(std::size_t{20} * 12 * 3);
  const std::vector<unsigned char> grey = noise(std::size_t{20} * 12);
  return {{"baseline.jpg", jpeg(20, 12, 3, pixels)},
          {"progressive.jpg", jpeg(20, 12, 3, pixels, true)},
          {"grey.jpg", jpeg(20, 12, 1, grey)},
          {"colour.png", png(20, 12, PNG_FORMAT_RGB, pixels)},
          {"grey.png", png(20, 12, PNG_FORMAT_GRAY, grey)}};
}

TEST(ImageMutants, OfPngsAndJpegsSurvive) {
  const TemporaryDirectory directory;
  for (const auto& [name, sound] : sound_images()) {
    std::mt19937 random(11);
    for (int i = 0; i < num_mutants() / 6; ++i) {
      const auto file = directory.write(name, mutant(sound, random));
      const std::string error =
          error_of([&] { prepare(read_image(file), parse_image_reading("shortest=9,crop=8")); });
      EXPECT_TRUE(error == "no error" || error.find(std::string(name) + ": ") != error.npos ||
                  error.find("expected at most") != error.npos ||
                  error.find("cannot be cut") != error.npos)
          << name << " mutant " << i << ": " << error;
    }
  }
}

TEST(ImageMutants, CutAnywhereSurvive) {
  const TemporaryDirectory directory;
  for (const auto& [name, sound] : sound_images())
    for (std::size_t length = 0; length < sound.size(); length += 3) {
      const auto file = directory.write(name, sound.substr(0, length));
      const std::string error = error_of([&] { read_image(file); });
      EXPECT_TRUE(error == "no error" || error.find(std::string(name) + ": ") != error.npos)
          << name << " cut at " << length;
    }
}

TEST(ImageMutants, OfIdxFilesSurvive) {
  using namespace std::string_literals;
  const std::string images = "\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x03"s + "\0\x33\xff\xff\0\0"s;
  const std::string labels = "\0\0\x08\x01\0\0\0\x02\x01\0"s;
  const TemporaryDirectory directory;
  std::mt19937 random(12);
  for (int i = 0; i < num_mutants() / 6; ++i) {
    const bool is_image = random() % 2 == 0;
    directory.write("train-images-idx3-ubyte", is_image ? mutant(images, random) : images);
    directory.write("train-labels-idx1-ubyte", is_image ? labels : mutant(labels, random));
    const std::string error = error_of(
        [&] { load_dataset(directory.path().string(), "train", {.reads = Reads::Numbers}); });
    EXPECT_TRUE(error == "no error" || error.find("-ubyte: ") != error.npos) << i << ": " << error;
  }
}

}  // namespace
}  // namespace lathe::data
