#include "lathe/compress/symmetric_matrix.h"

#include <cmath>

#include "lathe/core/error.h"

namespace lathe::compress {

std::vector<double> lower_factor(std::vector<double> a, std::size_t k) {
  for (std::size_t j = 0; j < k; ++j) {
    for (std::size_t i = j; i < k; ++i) {
      double sum = a[i * k + j];
      for (std::size_t p = 0; p < j; ++p) sum -= a[i * k + p] * a[j * k + p];
      if (i == j) {
        check(sum > 0, "a matrix to be positive definite");
        a[j * k + j] = std::sqrt(sum);
      } else {
        a[i * k + j] = sum / a[j * k + j];
      }
    }
    for (std::size_t i = 0; i < j; ++i) a[i * k + j] = 0;
  }
  return a;
}

std::vector<double> inverse(const std::vector<double>& matrix, std::size_t k) {
  const std::vector<double> a = lower_factor(matrix, k);
  // The inverse of the lower triangle, then its transpose times itself.
  std::vector<double> l(k * k, 0.0);
  for (std::size_t j = 0; j < k; ++j) {
    l[j * k + j] = 1 / a[j * k + j];
    for (std::size_t i = j + 1; i < k; ++i) {
      double sum = 0;
      for (std::size_t p = j; p < i; ++p) sum -= a[i * k + p] * l[p * k + j];
      l[i * k + j] = sum / a[i * k + i];
    }
  }
  std::vector<double> result(k * k, 0.0);
  for (std::size_t p = 0; p < k; ++p)
    for (std::size_t i = 0; i <= p; ++i)
      for (std::size_t j = 0; j <= p; ++j) result[i * k + j] += l[p * k + i] * l[p * k + j];
  return result;
}

std::vector<double> inverse_factor(std::vector<double> products, std::size_t k) {
  double mean = 0;
  for (std::size_t i = 0; i < k; ++i) mean += products[i * k + i] / static_cast<double>(k);
  for (std::size_t i = 0; i < k; ++i) products[i * k + i] += 0.01 * mean + 1e-12;
  return lower_factor(inverse(products, k), k);
}

}  // namespace lathe::compress
