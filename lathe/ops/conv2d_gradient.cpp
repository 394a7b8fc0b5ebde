#include "lathe/ops/convolution.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/operand_checks.h"

// The gradients of conv2d, with its attributes. The size of x or of the weight does not follow from
// that of dy (strides round down), so the result type is written.
//   conv2d_input_gradient(dy, weight):  dx[input] = sum of weight[tap] * dy[output],
//   conv2d_weight_gradient(dy, x):      dweight[tap] = sum of x[input] * dy[output],
// each over the products in which the element takes part.
namespace lathe::ops::conv2d_gradient {
namespace {

void check_gradient(std::string_view op, const OpCall& call, const Type& x, const Type& weight) {
  require_floating(op, call, 0);
  const Type y = conv2d_type(x, weight, call.attributes());
  if (call.input(0).shape != y.shape)
    fail("{}: dy {} does not fit: expected shape {}", op, to_text(call.input(0)), to_text(y.shape));
}

std::vector<Type> infer_input(const OpCall& call) {
  const Type& x = declared_type("conv2d_input_gradient", call);
  check_gradient("conv2d_input_gradient", call, x, call.input(1));
  return {{.dtype = call.input(0).dtype, .shape = x.shape}};
}

std::vector<Type> infer_weight(const OpCall& call) {
  const Type& weight = declared_type("conv2d_weight_gradient", call);
  check_gradient("conv2d_weight_gradient", call, call.input(1), weight);
  return {{.dtype = call.input(0).dtype, .shape = weight.shape}};
}

Size flops(const OpCall& call, const Type& weight) {
  return Size(2) * call.input(0).num_elements() * weight.axis(1) * weight.axis(2) * weight.axis(3);
}

void input_reference(const KernelCall& call) {
  const std::vector<double> dy = read_elements(call.input(0));
  const std::vector<double> weight = read_elements(call.input(1));
  std::vector<double> dx(static_cast<std::size_t>(call.outputs[0].num_elements()), 0.0);
  for_each_product(call.outputs[0], call.input(1), call.input(0), call.attributes,
                   [&](std::size_t output, std::size_t input, std::size_t tap) {
                     dx[input] += weight[tap] * dy[output];
                   });
  write_elements(call.outputs[0], dx);
}

void weight_reference(const KernelCall& call) {
  const std::vector<double> dy = read_elements(call.input(0));
  const std::vector<double> x = read_elements(call.input(1));
  std::vector<double> dweight(static_cast<std::size_t>(call.outputs[0].num_elements()), 0.0);
  for_each_product(call.input(1), call.outputs[0], call.input(0), call.attributes,
                   [&](std::size_t output, std::size_t input, std::size_t tap) {
                     dweight[tap] += x[input] * dy[output];
                   });
  write_elements(call.outputs[0], dweight);
}

const Register input{Op{
    .name = "conv2d_input_gradient",
    .summary = "the gradient of conv2d with respect to x, whose type is written",
    .operands = {{.name = "dy"}, {.name = "weight"}},
    .attributes = conv2d_attributes(),
    .infer = infer_input,
    .flops = [](const OpCall& call) { return flops(call, call.input(1)); },
    .reference = input_reference,
    .is_differentiable = false,
    .examples = {"conv2d_input_gradient(f32[B,4,5,5], f32[4,3,3,3]) {pads=[1,1,1,1]} : "
                 "f32[B,3,5,5]"},
}};

const Register weight{Op{
    .name = "conv2d_weight_gradient",
    .summary = "the gradient of conv2d with respect to the weight, whose type is written",
    .operands = {{.name = "dy"}, {.name = "x"}},
    .attributes = conv2d_attributes(),
    .infer = infer_weight,
    .flops = [](const OpCall& call) { return flops(call, infer_weight(call)[0]); },
    .reference = weight_reference,
    .is_differentiable = false,
    .examples = {"conv2d_weight_gradient(f32[B,4,5,5], f32[B,3,5,5]) {pads=[1,1,1,1]} : "
                 "f32[4,3,3,3]"},
}};

}  // namespace
}  // namespace lathe::ops::conv2d_gradient
