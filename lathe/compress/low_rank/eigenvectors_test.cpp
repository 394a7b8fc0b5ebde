#include "lathe/compress/low_rank/eigenvectors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace lathe::compress {
namespace {

TEST(Eigenvectors, OfASmallMatrix) {
  // (3, 1) are the values of [2 1; 1 2], on (1, 1) and (1, -1).
  const Eigenvectors found = find_eigenvectors({2, 1, 1, 2}, 2);
  EXPECT_DOUBLE_EQ(found.values[0], 3);
  EXPECT_DOUBLE_EQ(found.values[1], 1);
  EXPECT_NEAR(std::fabs(found.vectors[0]), std::sqrt(0.5), 1e-15);
  EXPECT_DOUBLE_EQ(found.vectors[0], found.vectors[1]);
  EXPECT_DOUBLE_EQ(found.vectors[2], -found.vectors[3]);
}

TEST(Eigenvectors, OfADiagonalMatrixAreItsAxes) {
  const Eigenvectors found = find_eigenvectors({1, 0, 0, 0, 5, 0, 0, 0, 3}, 3);
  EXPECT_EQ(found.values, (std::vector<double>{5, 3, 1}));
  EXPECT_EQ(found.vectors, (std::vector<double>{0, 1, 0, 0, 0, 1, 1, 0, 0}));
}

TEST(Eigenvectors, OfNothing) {
  EXPECT_TRUE(find_eigenvectors({}, 0).values.empty());
  EXPECT_EQ(find_eigenvectors({7}, 1).values, std::vector<double>{7});
  EXPECT_EQ(find_eigenvectors(std::vector<double>(9, 0.0), 3).values,
            (std::vector<double>(3, 0.0)));
}

// Reflections and rotations are orthogonal: each of the about k reflections and 2 k rotations of an
// element adds a few roundings of the matrix's own size, so k^2 of them bound all errors.
void expect_decomposition(const std::vector<double>& a, std::size_t k) {
  const Eigenvectors found = find_eigenvectors(a, k);
  double norm = 0;
  for (const double value : a) norm += value * value;
  const auto size = static_cast<double>(k * k);
  const double bound = 8 * size * std::numeric_limits<double>::epsilon();
  for (std::size_t i = 0; i + 1 < k; ++i) EXPECT_GE(found.values[i], found.values[i + 1]);
  for (std::size_t i = 0; i < k; ++i)
    for (std::size_t j = 0; j < k; ++j) {
      double product = 0, sum = 0;
      for (std::size_t p = 0; p < k; ++p) {
        product += found.vectors[i * k + p] * found.vectors[j * k + p];
        sum += found.values[p] * found.vectors[p * k + i] * found.vectors[p * k + j];
      }
      EXPECT_NEAR(product, i == j ? 1 : 0, bound) << i << "," << j;
      EXPECT_NEAR(sum, a[i * k + j], bound * std::sqrt(norm)) << i << "," << j;
    }
}

TEST(Eigenvectors, TakeRandomMatricesApart) {
  std::mt19937 random(3);
  for (const std::size_t k : {2, 3, 5, 16, 40}) {
    std::vector<double> a(k * k);
    for (std::size_t i = 0; i < k; ++i)
      for (std::size_t j = 0; j <= i; ++j)
        a[i * k + j] = a[j * k + i] = static_cast<double>(random() % 2001) / 1000 - 1;
    expect_decomposition(a, k);
  }
}

// Many equal values, and values that differ by twelve orders of magnitude.
TEST(Eigenvectors, TakeDegenerateMatricesApart) {
  constexpr std::size_t k = 12;
  std::vector<double> ones(k * k, 1.0), graded(k * k);
  for (std::size_t i = 0; i < k; ++i)
    for (std::size_t j = 0; j < k; ++j)
      graded[i * k + j] = std::pow(10.0, -0.5 * static_cast<double>(i + j)) * (i == j ? 2 : 1);
  expect_decomposition(ones, k);
  expect_decomposition(graded, k);
}

}  // namespace
}  // namespace lathe::compress
