#include <limits>

#include "lathe/core/op.h"
#include "lathe/ops/axes.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/operand_checks.h"

// slice_gradient(dy) {axis, begin, end}: zeros of the shape written, with dy at the indices begin
// to end - 1 of one axis.
namespace lathe::ops::slice_gradient {
namespace {

constexpr std::int64_t kToTheEnd = std::numeric_limits<std::int64_t>::max();

std::vector<Type> infer(const OpCall& call) {
  const Type& dy = call.input(0);
  const Type& result = declared_type("slice_gradient", call);
  const std::size_t axis =
      axis_position("slice_gradient", call.attributes().integer("axis"), result);
  Shape expected = result.shape;
  const auto from_front = [&](std::int64_t index) {
    if (index == kToTheEnd) return expected[axis];
    return index < 0 ? expected[axis] + Size(index) : Size(index);
  };
  const Size begin = from_front(call.attributes().integer("begin"));
  expected[axis] = from_front(call.attributes().integer("end")) - begin;
  if (dy.shape != expected)
    fail("slice_gradient: dy {} is not the slice of {}: expected shape {}", to_text(dy),
         to_text(result), to_text(expected));
  return {{.dtype = dy.dtype, .shape = result.shape}};
}

void reference(const KernelCall& call) {
  Tensor& x = call.outputs[0];
  const Tensor& dy = call.input(0);
  const std::size_t axis = axis_position(call.attributes.integer("axis"), x.rank());
  std::int64_t begin = call.attributes.integer("begin");
  if (begin < 0) begin += x.dim(axis);
  if (begin < 0 || begin + dy.dim(axis) > x.dim(axis))
    fail("slice from {} to {} is outside axis {}, which has size {}", begin, begin + dy.dim(axis),
         axis, x.dim(axis));
  const std::vector<std::int64_t> strides = row_major_strides(x.dims());
  const std::vector<std::int64_t> places =
      strided_indices(dy.dims(), strides, begin * strides[axis]);
  const std::vector<double> gradient = read_elements(dy);
  std::vector<double> values(static_cast<std::size_t>(x.num_elements()), 0.0);
  for (std::size_t i = 0; i < gradient.size(); ++i)
    values[static_cast<std::size_t>(places[i])] = gradient[i];
  write_elements(x, values);
}

const Register registration{Op{
    .name = "slice_gradient",
    .summary = "the gradient of slice: zeros of the shape written, with dy at a run of indices",
    .operands = {{.name = "dy"}},
    .attributes = {{.name = "axis", .default_value = 0, .summary = "the axis", .required = true},
                   {.name = "begin",
                    .default_value = 0,
                    .summary = "the first index; negative ones count from the end"},
                   {.name = "end",
                    .default_value = kToTheEnd,
                    .summary = "the index after the last; negative ones count from the end"}},
    .infer = infer,
    .flops = [](const OpCall&) { return Size(0); },
    .reference = reference,
    .is_differentiable = false,
    .examples = {"slice_gradient(f32[T,4]) {axis=1, begin=2, end=6} : f32[T,8]",
                 "slice_gradient(f32[B,L-1,4]) {axis=1, begin=1} : f32[B,L,4]"},
}};

}  // namespace
}  // namespace lathe::ops::slice_gradient
