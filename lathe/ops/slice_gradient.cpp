#include "lathe/core/op.h"
#include "lathe/ops/axes.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/operand_checks.h"
#include "lathe/ops/slice_range.h"

// slice_gradient(dy) {axis, begin, end}: zeros of the shape written, with dy at the indices begin
// to end - 1 of one axis.
namespace lathe::ops::slice_gradient {
namespace {

std::vector<Type> infer(const OpCall& call) {
  const Type& dy = call.input(0);
  const Type& result = declared_type("slice_gradient", call);
  const std::size_t axis =
      axis_position("slice_gradient", call.attributes().integer("axis"), result);
  Shape expected = result.shape;
  const SliceRange range = slice_range(call.attributes(), expected[axis]);
  expected[axis] = range.end - range.begin;
  if (dy.shape != expected)
    fail("slice_gradient: dy {} is not the slice of {}: expected shape {}", to_text(dy),
         to_text(result), to_text(expected));
  return {{.dtype = dy.dtype, .shape = result.shape}};
}

void reference(const KernelCall& call) {
  Tensor& x = call.outputs[0];
  const Tensor& dy = call.input(0);
  const std::vector<std::int64_t> places = slice_places("slice_gradient", call.attributes, x, dy);
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
    .attributes = slice_attributes(),
    .infer = infer,
    .flops = [](const OpCall&) { return Size(0); },
    .reference = reference,
    .is_differentiable = false,
    .examples = {"slice_gradient(f32[T,4]) {axis=1, begin=2, end=6} : f32[T,8]",
                 "slice_gradient(f32[B,L-1,4]) {axis=1, begin=1} : f32[B,L,4]"},
}};

}  // namespace
}  // namespace lathe::ops::slice_gradient
