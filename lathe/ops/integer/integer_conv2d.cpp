#include "lathe/ops/convolution.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/integer/integer_result.h"
#include "lathe/ops/operand_checks.h"

// integer_conv2d(x[N,C,H,W], weight[O,C/groups,kh,kw], bias[O]) {strides, pads, dilations, groups,
// width, scale}: conv2d on integers, exactly. Padding is 0.
namespace lathe::ops::integer_conv2d {
namespace {

std::vector<Type> infer(const OpCall& call) {
  require_integer("integer_conv2d", "x", call.input(0));
  require_integer("integer_conv2d", "weight", call.input(1));
  Type result = conv2d_type(call.input(0), call.input(1), call.attributes());
  result.dtype = storage_of(integer_range(call.attributes()));
  if (call.has(2)) {
    require_integer("integer_conv2d", "bias", call.input(2));
    require_vector("integer_conv2d", "bias", call.input(2), call.input(1).axis(0));
  }
  return {result};
}

Size flops(const OpCall& call) {
  const Type& weight = call.input(1);
  return Size(2) * infer(call)[0].num_elements() * weight.axis(1) * weight.axis(2) * weight.axis(3);
}

void reference(const KernelCall& call) {
  const std::vector<std::int64_t> x = read_integers(call.input(0));
  const std::vector<std::int64_t> weight = read_integers(call.input(1));
  const Tensor& y = call.outputs[0];
  std::vector<std::int64_t> values(static_cast<std::size_t>(y.num_elements()), 0);
  if (call.has(2)) {
    const std::vector<std::int64_t> bias = read_integers(call.input(2));
    const auto plane = static_cast<std::size_t>(y.dim(2) * y.dim(3));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = bias[i / plane % bias.size()];
  }
  for_each_product(call.input(0), call.input(1), y, call.attributes,
                   [&](std::size_t output, std::size_t input, std::size_t tap) {
                     values[output] += weight[tap] * x[input];
                   });
  write_integers(call.outputs[0], values);
}

const Register registration{Op{
    .name = "integer_conv2d",
    .summary = "exact two-dimensional convolution of integer images [N,C,H,W]",
    .operands = {{.name = "x", .role = OperandRole::Input},
                 {.name = "weight", .role = OperandRole::Weight},
                 {.name = "bias", .optional = true, .role = OperandRole::Bias}},
    .attributes = with_integer_result(conv2d_attributes()),
    .infer = infer,
    .flops = flops,
    .reference = reference,
    .is_differentiable = false,
    .examples = {"integer_conv2d(i8[B,3,5,5], i8[4,3,3,3], i32[4]) {pads=[1,1,1,1], width=24}",
                 "integer_conv2d(i16[B,4,6,5], i8[4,1,3,3]) {groups=4, strides=[2,1], width=32}"},
}};

}  // namespace
}  // namespace lathe::ops::integer_conv2d
