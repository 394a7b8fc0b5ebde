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

}  // namespace
}  // namespace lathe::data
