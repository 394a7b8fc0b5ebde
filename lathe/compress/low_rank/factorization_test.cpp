#include "lathe/compress/low_rank/factorization.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

namespace lathe::compress {
namespace {

using Matrix = std::vector<double>;

Matrix random_matrix(std::size_t n, std::size_t m, unsigned seed) {
  std::mt19937 random(seed);
  Matrix result(n * m);
  for (double& value : result) value = static_cast<double>(random() % 2001) / 1000 - 1;
  return result;
}

Matrix product_of(const Factorization::Factors& factors, std::size_t n, std::size_t rank,
                  std::size_t m) {
  Matrix result(n * m, 0.0);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t p = 0; p < rank; ++p)
      for (std::size_t j = 0; j < m; ++j)
        result[i * m + j] += factors.left[i * rank + p] * factors.right[p * m + j];
  return result;
}

// The weighted square of M - L R.
double error_of(const Matrix& matrix, const Matrix& product, std::size_t n, std::size_t m,
                const ErrorWeights& weights) {
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t p = 0; p < m; ++p)
      for (std::size_t q = 0; q < m; ++q) {
        const double c =
            weights.products.empty() ? (p == q ? 1.0 : 0.0) : weights.products[p * m + q];
        sum += (weights.rows.empty() ? 1 : weights.rows[i]) * c *
               (matrix[i * m + p] - product[i * m + p]) * (matrix[i * m + q] - product[i * m + q]);
      }
  return sum;
}

// What a rank leaves out is the sum of the energies behind it, for every rank: no other product of
// that rank leaves out less (Eckart and Young). Energies are accurate to roundings of the largest.
void expect_best(std::size_t n, std::size_t m, const ErrorWeights& weights) {
  const Matrix matrix = random_matrix(n, m, 5);
  const Factorization found(matrix, n, m, weights);
  const std::vector<double>& energies = found.energies();
  ASSERT_EQ(energies.size(), weights.rows.empty() ? std::min(n, m) : m);
  const double bound = 1e-13 * static_cast<double>(n * m) * energies[0];
  for (std::size_t rank = 1; rank <= std::min(n, m); ++rank) {
    const double left =
        std::accumulate(energies.begin() + static_cast<std::ptrdiff_t>(rank), energies.end(), 0.0);
    const Matrix product = product_of(found.factors(rank), n, rank, m);
    EXPECT_NEAR(error_of(matrix, product, n, m, weights), left, bound) << rank;
  }
}

ErrorWeights some_products(std::size_t m) {
  const Matrix x = random_matrix(3 * m, m, 8);
  ErrorWeights weights{.rows = {}, .products = Matrix(m * m, 0.0)};
  for (std::size_t i = 0; i < 3 * m; ++i)
    for (std::size_t p = 0; p < m; ++p)
      for (std::size_t q = 0; q < m; ++q)
        weights.products[p * m + q] += x[i * m + p] * x[i * m + q] *
                                       static_cast<double>(1 + 9 * p) *
                                       static_cast<double>(1 + 9 * q);
  return weights;
}

TEST(Factorization, HasTheLeastError) {
  expect_best(9, 6, {});
  expect_best(6, 9, {});
}
TEST(Factorization, HasTheLeastErrorOfWhatLayersGive) {
  expect_best(9, 6, some_products(6));
  expect_best(6, 9, some_products(9));
}
TEST(Factorization, HasTheLeastErrorOfWhatIsLookedUp) {
  ErrorWeights weights;
  for (int i = 0; i < 9; ++i) weights.rows.push_back(i * i);
  expect_best(9, 6, weights);
}

// Features that are always zero, and features that are the same: nothing to divide by.
TEST(Factorization, TakesProductsThatHideDirections) {
  ErrorWeights weights{.rows = {}, .products = Matrix(36, 0.0)};
  for (const std::size_t i : {0, 1})
    for (const std::size_t j : {0, 1}) weights.products[i * 6 + j] = 1;
  const Matrix matrix = random_matrix(9, 6, 5);
  const Factorization found(matrix, 9, 6, weights);
  EXPECT_EQ(found.rank_of_energy(0.999), 1u);
  for (const std::size_t rank : {1, 4, 6}) {
    const Factorization::Factors factors = found.factors(rank);
    for (const double value : factors.left) EXPECT_TRUE(std::isfinite(value));
    EXPECT_NEAR(error_of(matrix, product_of(factors, 9, rank, 6), 9, 6, weights), 0, 1e-12);
  }
}

TEST(Factorization, TellsTheRankOfAShareOfEnergy) {
  const Factorization found({3, 0, 0, 0, 2, 0, 0, 0, 1}, 3, 3);
  EXPECT_EQ(found.energies(), (std::vector<double>{9, 4, 1}));
  EXPECT_EQ(found.rank_of_energy(0.6), 1u);
  EXPECT_EQ(found.rank_of_energy(0.9), 2u);
  EXPECT_EQ(found.rank_of_energy(1), 3u);
}

TEST(Factorization, MakesBothFactorsAsLong) {
  const Factorization::Factors factors = Factorization(random_matrix(9, 6, 5), 9, 6).factors(3);
  for (std::size_t r = 0; r < 3; ++r) {
    double left = 0, right = 0;
    for (std::size_t i = 0; i < 9; ++i) left += std::pow(factors.left[i * 3 + r], 2);
    for (std::size_t j = 0; j < 6; ++j) right += std::pow(factors.right[r * 6 + j], 2);
    EXPECT_NEAR(left, right, 1e-12 * left);
  }
}

}  // namespace
}  // namespace lathe::compress
