#include "lathe/study/math/symmetric_eigen.h"

#include <cmath>

#include "lathe/core/error.h"

namespace lathe::study {

SymmetricEigen symmetric_eigen(std::vector<double> matrix, int n) {
  check(static_cast<int>(matrix.size()) == n * n, "a square matrix");
  std::vector<double> vectors(matrix.size(), 0.0);
  for (int i = 0; i < n; ++i) vectors[i * n + i] = 1;
  const auto at = [&](int row, int column) -> double& { return matrix[row * n + column]; };

  double total = 0;
  for (const double each : matrix) total += each * each;
  // Convergence is quadratic: a dozen sweeps are more than any matrix needs.
  for (int sweep = 0; sweep < 30; ++sweep) {
    double off = 0;
    for (int p = 0; p < n; ++p)
      for (int q = p + 1; q < n; ++q) off += at(p, q) * at(p, q);
    if (!(off > total * 1e-30)) break;
    for (int p = 0; p < n; ++p) {
      for (int q = p + 1; q < n; ++q) {
        if (at(p, q) == 0) continue;
        // The smaller of the two angles that make (p, q) zero.
        const double theta = (at(q, q) - at(p, p)) / (2 * at(p, q));
        const double tangent =
            (theta >= 0 ? 1 : -1) / (std::abs(theta) + std::sqrt(theta * theta + 1));
        const double cosine = 1 / std::sqrt(tangent * tangent + 1);
        const double sine = tangent * cosine;
        for (int k = 0; k < n; ++k) {
          const double kp = at(k, p);
          const double kq = at(k, q);
          at(k, p) = cosine * kp - sine * kq;
          at(k, q) = sine * kp + cosine * kq;
        }
        for (int k = 0; k < n; ++k) {
          const double pk = at(p, k);
          const double qk = at(q, k);
          at(p, k) = cosine * pk - sine * qk;
          at(q, k) = sine * pk + cosine * qk;
          const double vp = vectors[k * n + p];
          const double vq = vectors[k * n + q];
          vectors[k * n + p] = cosine * vp - sine * vq;
          vectors[k * n + q] = sine * vp + cosine * vq;
        }
      }
    }
  }
  SymmetricEigen result;
  for (int i = 0; i < n; ++i) result.values.push_back(at(i, i));
  result.vectors = std::move(vectors);
  return result;
}

}  // namespace lathe::study
