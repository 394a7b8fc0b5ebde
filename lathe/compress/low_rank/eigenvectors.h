#pragma once

#include <cstddef>
#include <vector>

namespace lathe::compress {

/// A symmetric matrix A as the sum of values[i] v_i v_i^T, v_i being orthonormal.
struct Eigenvectors {
  std::vector<double> values;   ///< in falling order
  std::vector<double> vectors;  ///< k x k: row i is v_i
};

/// The eigenvectors of a symmetric matrix, k x k, row by row: made tridiagonal by reflections, then
/// diagonal by rotations (the QR algorithm with implicit shifts). Takes about 8 k^3 operations.
Eigenvectors find_eigenvectors(std::vector<double> matrix, std::size_t k);

}  // namespace lathe::compress
