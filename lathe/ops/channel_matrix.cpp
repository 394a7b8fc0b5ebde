#include "lathe/ops/channel_matrix.h"

#include "lathe/ops/operand_checks.h"

namespace lathe::ops {
namespace {

// Calls body(index in the tensor, index in the matrix) for every element.
template <typename Body>
void for_each_place(const std::vector<std::int64_t>& dims, std::int64_t axis, const Body& body) {
  std::int64_t before = 1, after = 1;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (static_cast<std::int64_t>(i) < axis) before *= dims[i];
    if (static_cast<std::int64_t>(i) > axis) after *= dims[i];
  }
  const std::int64_t rows = dims[static_cast<std::size_t>(axis)];
  for (std::int64_t b = 0; b < before; ++b)
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t a = 0; a < after; ++a)
        body(static_cast<std::size_t>((b * rows + r) * after + a),
             static_cast<std::size_t>((r * before + b) * after + a));
}

std::vector<std::int64_t> matrix_dims(const std::vector<std::int64_t>& dims, std::int64_t axis) {
  const std::int64_t rows = dims.at(static_cast<std::size_t>(axis));
  std::int64_t columns = 1;
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (static_cast<std::int64_t>(i) != axis) columns *= dims[i];
  return {rows, columns};
}

}  // namespace

Type matrix_type(std::string_view op, const Type& type, std::int64_t axis) {
  if (axis < 0) return type;
  if (axis >= static_cast<std::int64_t>(type.rank()))
    fail("{}: axis {} is none of {}", op, axis, to_text(type));
  Size columns(1);
  for (std::size_t i = 0; i < type.rank(); ++i)
    if (static_cast<std::int64_t>(i) != axis) columns = columns * type.shape[i];
  return {type.dtype, {type.shape[static_cast<std::size_t>(axis)], columns}};
}

std::int64_t simplified_axis(std::int64_t rank, std::int64_t axis) {
  return rank == 2 && axis == 0 ? -1 : axis;
}

Tensor to_matrix(const Tensor& tensor, std::int64_t axis) {
  if (axis < 0) return tensor;
  if (axis == 0) return tensor.reshaped(matrix_dims(tensor.dims(), 0));
  Tensor matrix(DType::F32, matrix_dims(tensor.dims(), axis));
  const std::span<const float> from = tensor.data<float>();
  const std::span<float> to = matrix.mutable_data<float>();
  for_each_place(tensor.dims(), axis, [&](std::size_t i, std::size_t m) { to[m] = from[i]; });
  return matrix;
}

Tensor from_matrix(const Tensor& matrix, const std::vector<std::int64_t>& dims, std::int64_t axis) {
  if (axis <= 0) return matrix.reshaped(dims);
  Tensor tensor(DType::F32, dims);
  const std::span<const float> from = matrix.data<float>();
  const std::span<float> to = tensor.mutable_data<float>();
  for_each_place(dims, axis, [&](std::size_t i, std::size_t m) { to[i] = from[m]; });
  return tensor;
}

}  // namespace lathe::ops
