#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lathe/core/tensor.h"

/// How reference kernels read and write: everything is computed in double and rounded once.
namespace lathe::ops {

/// Every element as a double, in row-major order.
std::vector<double> read_elements(const Tensor& tensor);
/// Every element of an integer tensor, exactly.
std::vector<std::int64_t> read_integers(const Tensor& tensor);
/// Stores `values` in row-major order, each rounded once to the tensor's dtype.
void write_elements(Tensor& tensor, std::span<const double> values);
/// Element i of `to` becomes element `indices[i]` of `from`, which has the same dtype; bits are
/// kept.
void copy_elements(const Tensor& from, std::span<const std::int64_t> indices, Tensor& to);

}  // namespace lathe::ops
