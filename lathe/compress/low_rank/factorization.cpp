#include "lathe/compress/low_rank/factorization.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lathe/compress/low_rank/eigenvectors.h"
#include "lathe/core/error.h"

namespace lathe::compress {
namespace {

using Matrix = std::vector<double>;

// A [n, k] times B [k, m].
Matrix multiply(const Matrix& a, const Matrix& b, std::size_t n, std::size_t k, std::size_t m) {
  Matrix result(n * m, 0.0);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t p = 0; p < k; ++p) {
      const double factor = a[i * k + p];
      if (factor == 0) continue;
      const double* const from = b.data() + p * m;
      double* const to = result.data() + i * m;
      for (std::size_t j = 0; j < m; ++j) to[j] += factor * from[j];
    }
  return result;
}

Matrix transposed(const Matrix& a, std::size_t n, std::size_t m) {
  Matrix result(n * m);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < m; ++j) result[j * n + i] = a[i * m + j];
  return result;
}

// The sum over rows x of weight * x x^T, for A [n, m].
Matrix squares(const Matrix& a, std::size_t n, std::size_t m, const std::vector<double>& weights) {
  Matrix result(m * m, 0.0);
  for (std::size_t i = 0; i < n; ++i) {
    const double* const x = a.data() + i * m;
    for (std::size_t p = 0; p < m; ++p) {
      const double factor = (weights.empty() ? 1 : weights[i]) * x[p];
      if (factor == 0) continue;
      for (std::size_t q = p; q < m; ++q) result[p * m + q] += factor * x[q];
    }
  }
  for (std::size_t p = 0; p < m; ++p)
    for (std::size_t q = 0; q < p; ++q) result[p * m + q] = result[q * m + p];
  return result;
}

// S with S S^T = C, from the eigenvectors of C; what is negative by rounding counts as nothing.
Matrix root(const Matrix& products, std::size_t k) {
  const Eigenvectors found = find_eigenvectors(products, k);
  Matrix result(k * k);
  for (std::size_t i = 0; i < k; ++i)
    for (std::size_t j = 0; j < k; ++j)
      result[j * k + i] = std::sqrt(std::max(0.0, found.values[i])) * found.vectors[i * k + j];
  return result;
}

// Makes rows orthonormal to each other by subtracting from each what those before it hold; a row
// that is nothing else becomes zeros.
void orthonormalize(Matrix& rows, std::size_t count, std::size_t length) {
  for (std::size_t i = 0; i < count; ++i) {
    double* const x = rows.data() + i * length;
    const double before = std::sqrt(std::inner_product(x, x + length, x, 0.0));
    // Twice, because the first time leaves what rounding added.
    for (int time = 0; time < 2; ++time)
      for (std::size_t p = 0; p < i; ++p) {
        const double* const other = rows.data() + p * length;
        const double part = std::inner_product(x, x + length, other, 0.0);
        for (std::size_t j = 0; j < length; ++j) x[j] -= part * other[j];
      }
    const double norm = std::sqrt(std::inner_product(x, x + length, x, 0.0));
    const double factor = norm > 1e-10 * before ? 1 / norm : 0;
    for (std::size_t j = 0; j < length; ++j) x[j] *= factor;
  }
}

}  // namespace

// With V of the largest eigenvectors of M^T D M, (M V) V^T is the best where rows count D times.
// With U of those of M C M^T, U (U^T M) is the best where C are the products of what is multiplied.
// Where M has more rows than columns, those are M S v for the eigenvectors v of (M S)^T (M S).
Factorization::Factorization(Matrix matrix, std::size_t rows, std::size_t columns,
                             const ErrorWeights& weights)
    : rows_(rows), columns_(columns), matrix_(std::move(matrix)) {
  check(matrix_.size() == rows * columns, "a matrix of the size given");
  check(weights.rows.empty() || weights.products.empty(), "weights of rows or products, not both");
  is_right_ = !weights.rows.empty() || (weights.products.empty() && columns <= rows);
  Eigenvectors found;
  if (is_right_) {
    found = find_eigenvectors(squares(matrix_, rows, columns, weights.rows), columns);
    basis_ = std::move(found.vectors);
  } else {
    Matrix seen = matrix_;
    if (!weights.products.empty())
      seen = multiply(matrix_, root(weights.products, columns), rows, columns, columns);
    if (rows <= columns) {
      found = find_eigenvectors(squares(transposed(seen, rows, columns), columns, rows, {}), rows);
      basis_ = std::move(found.vectors);
    } else {
      found = find_eigenvectors(squares(seen, rows, columns, {}), columns);
      basis_ = multiply(found.vectors, transposed(seen, rows, columns), columns, columns, rows);
      orthonormalize(basis_, columns, rows);
    }
  }
  energies_ = std::move(found.values);
  for (double& energy : energies_) energy = std::max(0.0, energy);
}

std::size_t Factorization::rank_of_energy(double share) const {
  const double total = std::accumulate(energies_.begin(), energies_.end(), 0.0);
  double sum = 0;
  for (std::size_t rank = 0; rank < energies_.size(); ++rank) {
    sum += energies_[rank];
    if (sum >= share * total) return rank + 1;
  }
  return energies_.size();
}

Factorization::Factors Factorization::factors(std::size_t rank) const {
  check(rank >= 1 && rank <= energies_.size(), "a rank that the matrix can have");
  Factors result;
  if (is_right_) {
    result.right.assign(basis_.begin(),
                        basis_.begin() + static_cast<std::ptrdiff_t>(rank * columns_));
    result.left =
        multiply(matrix_, transposed(result.right, rank, columns_), rows_, columns_, rank);
  } else {
    const Matrix directions(basis_.begin(),
                            basis_.begin() + static_cast<std::ptrdiff_t>(rank * rows_));
    result.right = multiply(directions, matrix_, rank, rows_, columns_);
    result.left = transposed(directions, rank, rows_);
  }
  for (std::size_t r = 0; r < rank; ++r) {
    double left = 0, right = 0;
    for (std::size_t i = 0; i < rows_; ++i) left += std::pow(result.left[i * rank + r], 2);
    for (std::size_t j = 0; j < columns_; ++j) right += std::pow(result.right[r * columns_ + j], 2);
    if (left == 0 || right == 0) continue;
    const double factor = std::pow(right / left, 0.25);
    for (std::size_t i = 0; i < rows_; ++i) result.left[i * rank + r] *= factor;
    for (std::size_t j = 0; j < columns_; ++j) result.right[r * columns_ + j] /= factor;
  }
  return result;
}

}  // namespace lathe::compress
