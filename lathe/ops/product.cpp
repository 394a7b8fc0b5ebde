#include "lathe/core/op.h"
#include "lathe/ops/axes.h"
#include "lathe/ops/whole.h"

// product(x) {axes, keep}: the product of the elements over some axes.
namespace lathe::ops::product {
namespace {

std::vector<Type> infer(const OpCall& call) {
  const Type& x = call.input(0);
  const std::vector<std::int64_t>& axes = call.attributes().integers("axes");
  for (const std::int64_t axis : axes) axis_position("product", axis, x);
  const std::vector<bool> is_reduced = reduced_axes(axes, x.rank());
  Type result{.dtype = x.dtype, .shape = {}};
  for (std::size_t axis = 0; axis < x.rank(); ++axis) {
    if (!is_reduced[axis]) result.shape.push_back(x.shape[axis]);
    if (is_reduced[axis] && call.attributes().flag("keep")) result.shape.push_back(Size(1));
  }
  return {result};
}

template <typename Number>
void multiply(const KernelCall& call) {
  const Tensor& x = call.input(0);
  const std::vector<bool> is_reduced = reduced_axes(call.attributes.integers("axes"), x.rank());
  std::vector<std::int64_t> kept;
  for (std::size_t axis = 0; axis < x.rank(); ++axis)
    kept.push_back(is_reduced[axis] ? 1 : x.dim(axis));
  std::vector<std::int64_t> strides = row_major_strides(kept);
  for (std::size_t axis = 0; axis < x.rank(); ++axis)
    if (is_reduced[axis]) strides[axis] = 0;
  const std::vector<std::int64_t> targets = strided_indices(x.dims(), strides);
  const std::vector<Number> values = read_numbers<Number>(x);
  std::vector<Number> y(static_cast<std::size_t>(call.outputs[0].num_elements()), Number{1});
  for (std::size_t i = 0; i < values.size(); ++i) {
    Number& product = y[static_cast<std::size_t>(targets[i])];
    product = product * values[i];
  }
  write_numbers(call.outputs[0], y);
}

void reference(const KernelCall& call) {
  with_numbers_of(call.outputs[0].dtype(), [&](auto zero) { multiply<decltype(zero)>(call); });
}

const Register registration{Op{
    .name = "product",
    .summary = "the product of the elements over some axes",
    .operands = {{.name = "x"}},
    .attributes = {{.name = "axes",
                    .default_value = std::vector<std::int64_t>{},
                    .summary = "the axes to reduce; none: all of them"},
                   {.name = "keep",
                    .default_value = false,
                    .summary = "whether reduced axes stay with size 1"}},
    .infer = infer,
    .flops = [](const OpCall& call) { return call.input(0).num_elements(); },
    .reference = reference,
    .is_differentiable = false,
    .examples = {"product(f32[T,4]) {axes=[-1]}", "product(i64[2,3]) {axes=[0], keep=true}"},
}};

}  // namespace
}  // namespace lathe::ops::product
