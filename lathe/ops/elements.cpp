#include "lathe/ops/elements.h"

#include <cstring>

namespace lathe::ops {

std::vector<double> read_elements(const Tensor& tensor) {
  std::vector<double> values(static_cast<std::size_t>(tensor.num_elements()));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = tensor.at(static_cast<std::int64_t>(i));
  return values;
}

std::vector<std::int64_t> read_integers(const Tensor& tensor) {
  check(!is_floating(tensor.dtype()), "a tensor of integers");
  if (tensor.dtype() == DType::I64) {
    const std::span<const std::int64_t> data = tensor.data<std::int64_t>();
    return {data.begin(), data.end()};
  }
  // Every other integer fits in a double.
  std::vector<std::int64_t> values(static_cast<std::size_t>(tensor.num_elements()));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<std::int64_t>(tensor.at(static_cast<std::int64_t>(i)));
  return values;
}

void write_elements(Tensor& tensor, std::span<const double> values) {
  const Tensor rounded = Tensor::from<double>(tensor.dims(), values).converted(tensor.dtype());
  std::memcpy(tensor.mutable_bytes(), rounded.bytes(),
              static_cast<std::size_t>(rounded.num_bytes()));
}

void copy_elements(const Tensor& from, std::span<const std::int64_t> indices, Tensor& to) {
  check(from.dtype() == to.dtype(), "a copy between tensors of one dtype");
  check(static_cast<std::size_t>(to.num_elements()) == indices.size(), "an index for each element");
  const std::int64_t size = size_of(from.dtype());
  std::byte* target = to.mutable_bytes();
  for (const std::int64_t index : indices) {
    check(index >= 0 && index < from.num_elements(), "an index inside the tensor");
    std::memcpy(target, from.bytes() + index * size, static_cast<std::size_t>(size));
    target += size;
  }
}

}  // namespace lathe::ops
