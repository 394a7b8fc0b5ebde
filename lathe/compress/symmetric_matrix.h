#pragma once

#include <cstddef>
#include <vector>

/// Symmetric positive definite matrices, k x k, row by row.
namespace lathe::compress {

/// The lower triangular L with L L^T = the matrix (Cholesky); zeros above its diagonal. Reads the
/// lower triangle alone.
std::vector<double> lower_factor(std::vector<double> matrix, std::size_t k);

std::vector<double> inverse(const std::vector<double>& matrix, std::size_t k);

}  // namespace lathe::compress
