#include "lathe/io/onnx/size_reshapes.h"

#include <algorithm>

namespace lathe::io::onnx {
namespace {

// Arrays of sizes with axes of 1 more or less are the same numbers.
bool give_reshaped(OnnxCall& call, const Shape& shape) {
  const Known& known = call.known(0);
  if (known.constant) return false;
  if (known.sizes) {
    SizeArray result = *known.sizes;
    result.dims.clear();
    for (const Size& size : shape) {
      if (!size.is_constant() || size.constant() < 0) return false;
      result.dims.push_back(size.constant());
    }
    if (num_elements(result.dims) != static_cast<std::int64_t>(result.elements.size()))
      return false;
    call.give(std::move(result));
    return true;
  }
  if (!known.affine) return false;
  // Axes other than those of 1 must stay in their order.
  AffineArray result{.dtype = known.affine->dtype, .shape = shape, .offset = known.affine->offset};
  std::size_t from = 0;
  for (const Size& size : shape) {
    if (size == Size(1)) {
      result.slopes.emplace_back(0);
      continue;
    }
    while (from < known.affine->shape.size() && known.affine->shape[from] == Size(1)) ++from;
    if (from == known.affine->shape.size() || known.affine->shape[from] != size) return false;
    result.slopes.push_back(known.affine->slopes[from++]);
  }
  while (from < known.affine->shape.size())
    if (known.affine->shape[from++] != Size(1)) return false;
  call.give(std::move(result));
  return true;
}

Shape shape_of(const Known& known) {
  if (known.affine) return known.affine->shape;
  Shape shape;
  for (const std::int64_t size : known.sizes->dims) shape.emplace_back(size);
  return shape;
}

bool is_made_of_sizes(const OnnxCall& call) {
  const Known& known = call.known(0);
  return !known.constant && (known.sizes || known.affine);
}

}  // namespace

bool fold_reshape(OnnxCall& call) {
  if (!is_made_of_sizes(call) || !call.has(1) || !call.known(1).sizes) return false;
  const Shape from = shape_of(call.known(0));
  Shape shape;
  std::optional<std::size_t> open;
  for (const Size& size : call.known(1).sizes->elements) {
    if (size == Size(0) && shape.size() < from.size())
      shape.push_back(from[shape.size()]);
    else if (size == Size(-1)) {
      open = shape.size();
      shape.emplace_back(1);
    } else {
      shape.push_back(size);
    }
  }
  if (open) {
    Size all = 1, rest = 1;
    for (const Size& size : from) all *= size;
    for (const Size& size : shape) rest *= size;
    const std::optional<Size> quotient = exact_quotient(all, rest);
    if (!quotient) return false;
    shape[*open] = *quotient;
  }
  return give_reshaped(call, shape);
}

bool fold_squeeze(OnnxCall& call) {
  if (!is_made_of_sizes(call)) return false;
  const Shape from = shape_of(call.known(0));
  const std::optional<std::vector<std::int64_t>> axes = call.integers_of("axes", 1);
  Shape shape;
  std::vector<bool> is_gone(from.size(), false);
  if (axes)
    for (const std::int64_t axis : *axes) is_gone[axis_at(call, axis, from.size())] = true;
  if (!axes && std::ranges::any_of(from, [](const Size& size) {
        return !size.is_constant() && !is_at_least(size, 2);
      }))
    return false;
  for (std::size_t axis = 0; axis < from.size(); ++axis)
    if (axes ? !is_gone[axis] : from[axis] != Size(1)) shape.push_back(from[axis]);
  return give_reshaped(call, shape);
}

bool fold_unsqueeze(OnnxCall& call) {
  if (!is_made_of_sizes(call)) return false;
  const std::optional<std::vector<std::int64_t>> axes = call.integers_of("axes", 1);
  if (!axes) return false;
  const Shape from = shape_of(call.known(0));
  const std::size_t rank = from.size() + axes->size();
  std::vector<bool> is_new(rank, false);
  for (const std::int64_t axis : *axes) is_new[axis_at(call, axis, rank)] = true;
  Shape shape;
  std::size_t next = 0;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    if (!is_new[axis] && next == from.size()) return false;
    shape.push_back(is_new[axis] ? Size(1) : from[next++]);
  }
  return give_reshaped(call, shape);
}

}  // namespace lathe::io::onnx
