#include "lathe/numerics/integer/integer_square_root.h"

#include <gtest/gtest.h>

namespace lathe::numerics {
namespace {

TEST(IntegerSquareRoot, IsTheLargestWhoseSquareIsNotAbove) {
  for (std::uint64_t x = 0; x < 70000; ++x) {
    const std::uint64_t root = integer_square_root(x);
    EXPECT_LE(root * root, x);
    EXPECT_GT((root + 1) * (root + 1), x);
  }
}

TEST(IntegerSquareRoot, ReachesTheLargestOf64Bits) {
  EXPECT_EQ(integer_square_root(UINT64_MAX), 4294967295u);
  EXPECT_EQ(integer_square_root(std::uint64_t{4294967295u} * 4294967295u), 4294967295u);
  EXPECT_EQ(integer_square_root(std::uint64_t{4294967295u} * 4294967295u - 1), 4294967294u);
}

}  // namespace
}  // namespace lathe::numerics
