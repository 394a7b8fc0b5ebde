#include "lathe/hardware/memory_image.h"

#include <gtest/gtest.h>

namespace lathe::hardware {
namespace {

TEST(MemoryImage, PacksTheFirstElementIntoTheLowBits) {
  EXPECT_EQ((MemoryImage{.width = 4, .per_word = 2, .elements = {1, 2, -1, 8}}).text(), "21\n8f\n");
}

// 3 x 3 bits are 9 bits: 101 001 111 is 14f.
TEST(MemoryImage, TakesWidthsThatAreNoMultipleOfADigit) {
  EXPECT_EQ((MemoryImage{.width = 3, .per_word = 3, .elements = {7, 1, -3}}).text(), "14f\n");
}

}  // namespace
}  // namespace lathe::hardware
