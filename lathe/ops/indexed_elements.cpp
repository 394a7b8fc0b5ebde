#include "lathe/ops/indexed_elements.h"

#include "lathe/ops/axes.h"
#include "lathe/ops/elements.h"

namespace lathe::ops {
namespace {

std::int64_t from_front(std::int64_t index, std::int64_t size) {
  if (index < -size || index >= size) fail("index {} is outside an axis of size {}", index, size);
  return index < 0 ? index + size : index;
}

}  // namespace

std::vector<std::int64_t> elements_along(std::span<const std::int64_t> dims, const Tensor& indices,
                                         std::size_t axis) {
  std::vector<std::int64_t> strides = row_major_strides(dims);
  const std::int64_t along = strides[axis];
  strides[axis] = 0;
  std::vector<std::int64_t> result = strided_indices(indices.dims(), strides);
  const std::vector<std::int64_t> places = read_integers(indices);
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] += from_front(places[i], dims[axis]) * along;
  return result;
}

IndexedParts parts_of(std::span<const std::int64_t> dims, const Tensor& indices,
                      std::size_t batch_axes) {
  const std::vector<std::int64_t> strides = row_major_strides(dims);
  const std::vector<std::int64_t> places = read_integers(indices);
  const auto length = static_cast<std::size_t>(indices.dims().back());
  IndexedParts parts;
  for (std::size_t axis = batch_axes + length; axis < dims.size(); ++axis) parts.size *= dims[axis];
  const std::int64_t batches = num_elements(dims.first(batch_axes));
  const std::size_t tuples = length == 0 ? 0 : places.size() / length;
  const std::size_t a_batch = batches == 0 ? 0 : tuples / static_cast<std::size_t>(batches);
  const std::int64_t batch_size = batches == 0 ? 0 : num_elements(dims) / batches;
  for (std::size_t t = 0; t < tuples; ++t) {
    std::int64_t begin = static_cast<std::int64_t>(t / a_batch) * batch_size;
    for (std::size_t i = 0; i < length; ++i)
      begin += from_front(places[t * length + i], dims[batch_axes + i]) * strides[batch_axes + i];
    parts.begins.push_back(begin);
  }
  return parts;
}

}  // namespace lathe::ops
