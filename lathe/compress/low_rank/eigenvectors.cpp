#include "lathe/compress/low_rank/eigenvectors.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "lathe/core/error.h"

namespace lathe::compress {
namespace {

class EigenvectorFinder {
 public:
  EigenvectorFinder(std::vector<double> matrix, std::size_t k)
      : k_(k), a_(std::move(matrix)), vectors_(k * k, 0.0), diagonal_(k), beside_(k) {
    check(a_.size() == k * k, "a square matrix");
    for (std::size_t i = 0; i < k; ++i) vectors_[i * k + i] = 1;
  }

  Eigenvectors run() {
    for (std::size_t column = 0; column + 2 < k_; ++column) reflect(column);
    for (std::size_t i = 0; i < k_; ++i) {
      diagonal_[i] = a_[i * k_ + i];
      beside_[i] = i + 1 < k_ ? a_[(i + 1) * k_ + i] : 0;
    }
    diagonalize();
    return sorted();
  }

 private:
  double* row(std::vector<double>& matrix, std::size_t i) { return matrix.data() + i * k_; }

  // Clears a column below the element beside the diagonal: A <- H A H with H = 1 - 2 v v^T. Rows of
  // `vectors_` are the columns of the product of all reflections.
  void reflect(std::size_t column) {
    const std::size_t first = column + 1;
    std::vector<double> v(k_, 0.0);
    double tail = 0;
    for (std::size_t i = first; i < k_; ++i) {
      v[i] = a_[i * k_ + column];
      if (i > first) tail += v[i] * v[i];
    }
    if (tail == 0) return;
    const double length = std::sqrt(v[first] * v[first] + tail);
    v[first] += std::copysign(length, v[first]);  // away from zero, so that nothing cancels
    const double norm = std::sqrt(v[first] * v[first] + tail);
    for (std::size_t i = first; i < k_; ++i) v[i] /= norm;

    // With p = A v and w = p - (v.p) v, A becomes A - 2 v w^T - 2 w v^T.
    std::vector<double> w(k_, 0.0);
    double product = 0;
    for (std::size_t i = column; i < k_; ++i) {
      const double* const elements = row(a_, i);
      double sum = 0;
      for (std::size_t j = first; j < k_; ++j) sum += elements[j] * v[j];
      w[i] = sum;
      product += v[i] * sum;
    }
    for (std::size_t i = first; i < k_; ++i) w[i] -= product * v[i];
    for (std::size_t i = column; i < k_; ++i) {
      double* const elements = row(a_, i);
      for (std::size_t j = column; j < k_; ++j) elements[j] -= 2 * (v[i] * w[j] + w[i] * v[j]);
    }

    std::vector<double> sums(k_, 0.0);
    for (std::size_t i = first; i < k_; ++i) {
      const double* const elements = row(vectors_, i);
      for (std::size_t j = 0; j < k_; ++j) sums[j] += v[i] * elements[j];
    }
    for (std::size_t i = first; i < k_; ++i) {
      double* const elements = row(vectors_, i);
      for (std::size_t j = 0; j < k_; ++j) elements[j] -= 2 * v[i] * sums[j];
    }
  }

  bool is_split(std::size_t i) const {
    return std::fabs(beside_[i]) <= std::numeric_limits<double>::epsilon() *
                                        (std::fabs(diagonal_[i]) + std::fabs(diagonal_[i + 1]));
  }

  void diagonalize() {
    std::size_t steps = 0;
    for (std::size_t last = k_ == 0 ? 0 : k_ - 1; last > 0;) {
      if (is_split(last - 1)) {
        beside_[--last] = 0;
        continue;
      }
      std::size_t first = last - 1;
      while (first > 0 && !is_split(first - 1)) --first;
      step(first, last);
      check(++steps < 60 * k_, "the QR algorithm to come to an end");
    }
  }

  // One step of the QR algorithm on the block from `first` to `last`, shifted by the eigenvalue of
  // its last 2 x 2 corner that is nearest to the last element (Wilkinson). A rotation moves the
  // element that the one before it pushed off the diagonals one place further.
  void step(std::size_t first, std::size_t last) {
    const double half = (diagonal_[last - 1] - diagonal_[last]) / 2, corner = beside_[last - 1];
    const double shift =
        diagonal_[last] - corner * corner / (half + std::copysign(std::hypot(half, corner), half));
    double kept = diagonal_[first] - shift, pushed = beside_[first];
    for (std::size_t i = first; i < last; ++i) {
      const double length = std::hypot(kept, pushed);
      const double c = length == 0 ? 1 : kept / length, s = length == 0 ? 0 : pushed / length;
      if (i > first) beside_[i - 1] = length;
      const double upper = diagonal_[i], lower = diagonal_[i + 1], between = beside_[i];
      diagonal_[i] = c * c * upper + 2 * c * s * between + s * s * lower;
      diagonal_[i + 1] = s * s * upper - 2 * c * s * between + c * c * lower;
      beside_[i] = c * s * (lower - upper) + (c * c - s * s) * between;
      if (i + 1 < last) {
        kept = beside_[i];
        pushed = s * beside_[i + 1];
        beside_[i + 1] *= c;
      }
      double* const one = row(vectors_, i);
      double* const other = row(vectors_, i + 1);
      for (std::size_t j = 0; j < k_; ++j) {
        const double x = one[j], y = other[j];
        one[j] = c * x + s * y;
        other[j] = c * y - s * x;
      }
    }
  }

  Eigenvectors sorted() {
    std::vector<std::size_t> order(k_);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::greater{}, [&](std::size_t i) { return diagonal_[i]; });
    Eigenvectors result;
    for (const std::size_t i : order) {
      result.values.push_back(diagonal_[i]);
      result.vectors.insert(result.vectors.end(), row(vectors_, i), row(vectors_, i) + k_);
    }
    return result;
  }

  std::size_t k_;
  std::vector<double> a_, vectors_;
  std::vector<double> diagonal_, beside_;  // beside_[i] is between i and i + 1
};

}  // namespace

Eigenvectors find_eigenvectors(std::vector<double> matrix, std::size_t k) {
  return EigenvectorFinder(std::move(matrix), k).run();
}

}  // namespace lathe::compress
