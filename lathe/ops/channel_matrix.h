#pragma once

#include "lathe/core/tensor.h"
#include "lathe/core/type.h"

/// Tensors as the matrices that number formats work on: a scale belongs to a row, a block runs
/// along one. By default (axis -1) columns are the last axis and all others make rows, which fits
/// tokens and the weights of a linear. With an axis, its elements are the rows and all other axes
/// in order the columns: the output channels of a convolution [O,I,kh,kw] are its axis 0, those of
/// a product with b[K,N] its axis 1.
namespace lathe::ops {

/// The type of the matrix that a tensor is; for axis -1 the tensor's own, of any rank.
Type matrix_type(std::string_view op, const Type& type, std::int64_t axis);
/// The axis that -1 may stand for as well: nothing moves and rows are the same.
std::int64_t simplified_axis(std::int64_t rank, std::int64_t axis);

/// The elements of a float tensor in the matrix's order, and back.
Tensor to_matrix(const Tensor& tensor, std::int64_t axis);
Tensor from_matrix(const Tensor& matrix, const std::vector<std::int64_t>& dims, std::int64_t axis);

}  // namespace lathe::ops
