#pragma once

#include <vector>

namespace lathe::study {

/// A real symmetric matrix taken apart: column k of `vectors` (row-major, n by n, orthonormal) is
/// stretched by `values[k]`.
struct SymmetricEigen {
  std::vector<double> values;
  std::vector<double> vectors;
};

/// Jacobi's rotations, until what is off the diagonal is lost in rounding. `matrix` is row-major;
/// only finite numbers.
SymmetricEigen symmetric_eigen(std::vector<double> matrix, int n);

}  // namespace lathe::study
