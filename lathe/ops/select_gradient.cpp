#include "lathe/core/op.h"
#include "lathe/ops/axes.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/operand_checks.h"
#include "lathe/ops/selected_index.h"

// select_gradient(dy) {axis, index}: zeros of the shape written, with dy at one index of one axis.
namespace lathe::ops::select_gradient {
namespace {

std::vector<Type> infer(const OpCall& call) {
  const Type& dy = call.input(0);
  const Type& result = declared_type("select_gradient", call);
  Shape selected = result.shape;
  const std::size_t axis =
      axis_position("select_gradient", call.attributes().integer("axis"), result);
  selected.erase(selected.begin() + static_cast<std::ptrdiff_t>(axis));
  if (selected != dy.shape)
    fail("select_gradient: {} is no index of axis {} of {}", to_text(dy), axis, to_text(result));
  return {{.dtype = dy.dtype, .shape = result.shape}};
}

void reference(const KernelCall& call) {
  Tensor& x = call.outputs[0];
  const std::vector<std::int64_t> places =
      selected_places("select_gradient", call.attributes, x, call.input(0));
  const std::vector<double> dy = read_elements(call.input(0));
  std::vector<double> values(static_cast<std::size_t>(x.num_elements()), 0.0);
  for (std::size_t i = 0; i < dy.size(); ++i) values[static_cast<std::size_t>(places[i])] = dy[i];
  write_elements(x, values);
}

const Register registration{Op{
    .name = "select_gradient",
    .summary = "the gradient of select: zeros of the shape written, with dy at one index",
    .operands = {{.name = "dy"}},
    .attributes = select_attributes(),
    .infer = infer,
    .flops = [](const OpCall&) { return Size(0); },
    .reference = reference,
    .is_differentiable = false,
    .examples = {"select_gradient(f32[B,4]) {axis=1, index=0} : f32[B,L,4]",
                 "select_gradient(f32[T]) {axis=-1, index=-1} : f32[T,4]"},
}};

}  // namespace
}  // namespace lathe::ops::select_gradient
