#include "lathe/numerics/integer/normalization.h"

#include <gtest/gtest.h>

#include <array>

namespace lathe::numerics {
namespace {

TEST(Normalization, DividesByTheStandardDeviation) {
  // Mean 5, variance ((-3)^2 + 1 + 1 + 3^2) / 4 = 5, root = floor(16 * sqrt(16 * 5)) = 143.
  constexpr std::array<std::int64_t, 4> kRow{2, 4, 6, 8};
  const Normalization normalization{.size = 4, .root_fraction = 4, .fraction = 8};
  const RowMoments moments = row_moments(kRow, normalization);
  EXPECT_EQ(moments.sum, 20);
  EXPECT_EQ(moments.root, 143);
  // -12 * 2^12 / 143 = -343.7 and 4 * 2^12 / 143 = 114.6.
  EXPECT_EQ(normalized(2, moments, normalization), -344);
  EXPECT_EQ(normalized(6, moments, normalization), 115);
}

TEST(Normalization, GivesZerosForARowOfEqualElements) {
  constexpr std::array<std::int64_t, 3> kRow{7, 7, 7};
  const Normalization normalization{.size = 3, .root_fraction = 4, .fraction = 8};
  EXPECT_EQ(normalized(7, row_moments(kRow, normalization), normalization), 0);
}

TEST(Normalization, AddsEpsilonToTheVariance) {
  constexpr std::array<std::int64_t, 2> kRow{-1, 1};
  // size^2 * variance = 4; with epsilon 5 the root is 3, and 2 * 2^4 / 3 = 10.67.
  const Normalization normalization{.size = 2, .epsilon = 5, .fraction = 4};
  const RowMoments moments = row_moments(kRow, normalization);
  EXPECT_EQ(moments.root, 3);
  EXPECT_EQ(normalized(1, moments, normalization), 11);
}

}  // namespace
}  // namespace lathe::numerics
