#include "lathe/core/op.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/operand_checks.h"

// The two products in the gradient of linear. They are ops of their own, rather than matmul of
// reshaped operands, because they work on tokens whatever the leading axes are.
//   linear_input_gradient(dy[..,n], weight[n,k]):  dx[..,i] = sum over j of dy[..,j] * weight[j,i]
//   linear_weight_gradient(dy[..,n], x[..,k]):     dw[j,i] = sum over rows of dy[..,j] * x[..,i]
namespace lathe::ops::linear_gradient {
namespace {

std::vector<Type> infer_input(const OpCall& call) {
  require_floating("linear_input_gradient", call, 0);
  const Type& dy = call.input(0);
  const Type& weight = call.input(1);
  require_rank_at_least("linear_input_gradient", "dy", dy, 1);
  require_rank("linear_input_gradient", "weight", weight, 2);
  if (dy.axis(-1) != weight.axis(0))
    fail("cannot multiply {} by weight {}: inner sizes {} and {} differ", to_text(dy),
         to_text(weight), dy.axis(-1).text(), weight.axis(0).text());
  Type result{.dtype = dy.dtype, .shape = dy.shape};
  result.shape.back() = weight.axis(1);
  return {result};
}

void input_reference(const KernelCall& call) {
  const std::vector<double> dy = read_elements(call.input(0));
  const std::vector<double> weight = read_elements(call.input(1));
  const auto n = static_cast<std::size_t>(call.input(1).dim(0));
  const auto k = static_cast<std::size_t>(call.input(1).dim(1));
  std::vector<double> dx(static_cast<std::size_t>(call.outputs[0].num_elements()), 0.0);
  for (std::size_t row = 0; k > 0 && row < dx.size() / k; ++row)
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t i = 0; i < k; ++i) dx[row * k + i] += dy[row * n + j] * weight[j * k + i];
  write_elements(call.outputs[0], dx);
}

std::vector<Type> infer_weight(const OpCall& call) {
  require_floating("linear_weight_gradient", call, 0);
  const Type& dy = call.input(0);
  const Type& x = call.input(1);
  require_rank_at_least("linear_weight_gradient", "dy", dy, 1);
  require_rank("linear_weight_gradient", "x", x, dy.rank());
  for (std::size_t axis = 0; axis + 1 < x.rank(); ++axis)
    if (dy.shape[axis] != x.shape[axis])
      fail("linear_weight_gradient: dy {} and x {} differ in rows", to_text(dy), to_text(x));
  return {{.dtype = dy.dtype, .shape = {dy.axis(-1), x.axis(-1)}}};
}

void weight_reference(const KernelCall& call) {
  const std::vector<double> dy = read_elements(call.input(0));
  const std::vector<double> x = read_elements(call.input(1));
  const auto n = static_cast<std::size_t>(call.outputs[0].dim(0));
  const auto k = static_cast<std::size_t>(call.outputs[0].dim(1));
  std::vector<double> dw(n * k, 0.0);
  for (std::size_t row = 0; k > 0 && row < x.size() / k; ++row)
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t i = 0; i < k; ++i) dw[j * k + i] += dy[row * n + j] * x[row * k + i];
  write_elements(call.outputs[0], dw);
}

Size flops(const OpCall& call) {
  return Size(2) * call.input(0).num_elements() * call.input(1).axis(-1);
}

const Register input{Op{
    .name = "linear_input_gradient",
    .summary = "the gradient of linear with respect to x: dy times the weight",
    .operands = {{.name = "dy"}, {.name = "weight"}},
    .infer = infer_input,
    .flops = flops,
    .reference = input_reference,
    .is_differentiable = false,
    .is_per_token = true,
    .examples = {"linear_input_gradient(f32[T,16], f32[16,8])",
                 "linear_input_gradient(f32[B,L,3], f32[3,4])"},
}};

const Register weight{Op{
    .name = "linear_weight_gradient",
    .summary = "the gradient of linear with respect to its weight: transposed dy times x",
    .operands = {{.name = "dy"}, {.name = "x"}},
    .infer = infer_weight,
    .flops = flops,
    .reference = weight_reference,
    .is_differentiable = false,
    .examples = {"linear_weight_gradient(f32[T,16], f32[T,8])",
                 "linear_weight_gradient(f32[B,L,3], f32[B,L,4])"},
}};

}  // namespace
}  // namespace lathe::ops::linear_gradient
