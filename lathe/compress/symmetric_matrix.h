#pragma once

#include <cstddef>
#include <vector>

/// Symmetric positive definite matrices, k x k, row by row.
namespace lathe::compress {

/// The lower triangular L with L L^T = the matrix (Cholesky); zeros above its diagonal. Reads the
/// lower triangle alone.
std::vector<double> lower_factor(std::vector<double> matrix, std::size_t k);

std::vector<double> inverse(const std::vector<double>& matrix, std::size_t k);

/// The lower factor of the inverse of x x^T, with a hundredth of its mean diagonal added, which
/// keeps features that were never seen from dividing by nothing. Its transpose is the upper factor
/// by whose rows GPTQ and SparseGPT spread the error of a column over those to come.
std::vector<double> inverse_factor(std::vector<double> products, std::size_t k);

}  // namespace lathe::compress
