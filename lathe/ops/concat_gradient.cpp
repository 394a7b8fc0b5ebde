#include "lathe/core/op.h"
#include "lathe/ops/axes.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/operand_checks.h"

// concat_gradient(dy, like, ...) {axis}: consecutive parts of one axis of dy, as large as the
// operands of concat were. Unlike split it takes sizes from operands, so that they may be symbols.
namespace lathe::ops::concat_gradient {
namespace {

std::vector<Type> infer(const OpCall& call) {
  const Type& dy = call.input(0);
  const std::size_t axis = axis_position("concat_gradient", call.attributes().integer("axis"), dy);
  Size sum;
  std::vector<Type> results;
  for (std::size_t i = 1; i < call.num_inputs(); ++i) {
    const Type& like = call.input(i);
    require_rank("concat_gradient", "operands", like, dy.rank());
    Shape expected = dy.shape;
    expected[axis] = like.shape[axis];
    if (like.shape != expected)
      fail("concat_gradient: {} is no part of {} along axis {}", to_text(like), to_text(dy), axis);
    sum += like.shape[axis];
    results.push_back({.dtype = dy.dtype, .shape = like.shape});
  }
  if (results.empty()) fail("concat_gradient needs one part or more");
  if (sum != dy.shape[axis])
    fail("concat_gradient: parts add up to {}, but axis {} of {} is {}", sum.text(), axis,
         to_text(dy), dy.shape[axis].text());
  return results;
}

void reference(const KernelCall& call) {
  const Tensor& dy = call.input(0);
  const std::size_t axis = axis_position(call.attributes.integer("axis"), dy.rank());
  const std::vector<std::int64_t> strides = row_major_strides(dy.dims());
  std::int64_t begin = 0;
  for (Tensor& part : call.outputs) {
    copy_elements(dy, strided_indices(part.dims(), strides, begin * strides[axis]), part);
    begin += part.dim(axis);
  }
}

const Register registration{Op{
    .name = "concat_gradient",
    .summary = "the gradient of concat: the part of dy that belongs to each operand",
    .operands = {{.name = "dy"}, {.name = "like", .variadic = true}},
    .attributes = {{.name = "axis", .default_value = 0, .summary = "the axis", .required = true}},
    .num_results = -1,
    .infer = infer,
    .flops = [](const OpCall&) { return Size(0); },
    .reference = reference,
    .is_differentiable = false,
    .examples = {"concat_gradient(f32[T,6], f32[T,4], f32[T,2]) {axis=-1}",
                 "concat_gradient(f32[B,L+1,4], f32[B,1,4], f32[B,L,4]) {axis=1}"},
}};

}  // namespace
}  // namespace lathe::ops::concat_gradient
