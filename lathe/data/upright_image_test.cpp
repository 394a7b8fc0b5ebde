#include "lathe/data/upright_image.h"

#include <gtest/gtest.h>

namespace lathe::data {
namespace {

TEST(UprightImage, IsTurnedInEightWays) {
  const Image image{1, 2, 3, {1, 2, 3, 4, 5, 6}};
  EXPECT_EQ(turn_upright(image, 2), (Image{1, 2, 3, {3, 2, 1, 6, 5, 4}}));
  EXPECT_EQ(turn_upright(image, 3), (Image{1, 2, 3, {6, 5, 4, 3, 2, 1}}));
  EXPECT_EQ(turn_upright(image, 4), (Image{1, 2, 3, {4, 5, 6, 1, 2, 3}}));
  EXPECT_EQ(turn_upright(image, 5), (Image{1, 3, 2, {1, 4, 2, 5, 3, 6}}));
  EXPECT_EQ(turn_upright(image, 6), (Image{1, 3, 2, {4, 1, 5, 2, 6, 3}}));
  EXPECT_EQ(turn_upright(image, 7), (Image{1, 3, 2, {6, 3, 5, 2, 4, 1}}));
  EXPECT_EQ(turn_upright(image, 8), (Image{1, 3, 2, {3, 6, 2, 5, 1, 4}}));
}

std::string bytes_of(std::initializer_list<int> values) {
  std::string bytes;
  for (const int value : values) bytes += static_cast<char>(value);
  return bytes;
}

// Where the directory is, how many entries it has, and the one that says 6.
std::string tiff(int directory, int entries) {
  return bytes_of({'M',
                   'M',
                   0,
                   '*',
                   directory >> 24,
                   directory >> 16,
                   directory >> 8,
                   directory,
                   entries >> 8,
                   entries,
                   1,
                   0x12,
                   0,
                   3,
                   0,
                   0,
                   0,
                   1,
                   0,
                   6,
                   0,
                   0});
}

TEST(OrientationOf, IsReadInBothOrdersOfBytes) {
  EXPECT_EQ(orientation_of(tiff(8, 1)), 6);
  EXPECT_EQ(orientation_of(bytes_of(
                {'I', 'I', '*', 0, 8, 0, 0, 0, 1, 0, 0x12, 1, 3, 0, 1, 0, 0, 0, 8, 0, 0, 0})),
            8);
}

TEST(OrientationOf, IsOneWhereTheBytesAreCutAnywhere) {
  const std::string sound = tiff(8, 1);
  for (std::size_t length = 0; length < sound.size(); ++length) {
    const std::string cut = sound.substr(0, length);  // a buffer of its own, for the sanitizers
    EXPECT_EQ(orientation_of(cut), 1) << length;
  }
}

TEST(OrientationOf, IsOneWhereTheDirectoryLiesBeyondTheEnd) {
  for (const int directory : {-1, -2, 1 << 30, 23, 22, 21, 20})
    EXPECT_EQ(orientation_of(tiff(directory, 1)), 1) << directory;
}

TEST(OrientationOf, IsFoundBeforeEntriesThatAreNotThere) {
  EXPECT_EQ(orientation_of(tiff(8, 0xFFFF)), 6);
  EXPECT_EQ(orientation_of(tiff(8, 0)), 1);
  std::string other = tiff(8, 0xFFFF);
  other[11] = 0x13;
  EXPECT_EQ(orientation_of(other), 1);
}

}  // namespace
}  // namespace lathe::data
