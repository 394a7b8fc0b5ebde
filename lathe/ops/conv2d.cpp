#include "lathe/ops/convolution.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/gradient_nodes.h"
#include "lathe/ops/operand_checks.h"
#include "lathe/ops/weight_layout.h"

// conv2d(x[N,C,H,W], weight[O,C/groups,kh,kw], bias[O]) {strides, pads, dilations, groups}:
//   y[n,o,i,j] = bias[o] + sum over c, p, q of
//       weight[o,c,p,q] * x[n, group * C/groups + c, i*stride - pad + p*dilation, (same for j, q)],
// where group is o / (O/groups) and x is 0 outside.
namespace lathe::ops::conv2d {
namespace {

std::vector<Type> infer(const OpCall& call) {
  require_floating("conv2d", call, 0);
  const Type& weight = call.input(1);
  const Type result = conv2d_type(call.input(0), weight, call.attributes());
  if (call.has(2)) require_vector("conv2d", "bias", call.input(2), weight.axis(0));
  return {result};
}

Size flops(const OpCall& call) {
  const Type& weight = call.input(1);
  return Size(2) * infer(call)[0].num_elements() * weight.axis(1) * weight.axis(2) * weight.axis(3);
}

void reference(const KernelCall& call) {
  const std::vector<double> x = read_elements(call.input(0));
  const std::vector<double> weight = read_elements(call.input(1));
  const Tensor& y = call.outputs[0];
  std::vector<double> values(static_cast<std::size_t>(y.num_elements()), 0.0);
  if (call.has(2)) {
    const std::vector<double> bias = read_elements(call.input(2));
    const auto plane = static_cast<std::size_t>(y.dim(2) * y.dim(3));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = bias[i / plane % bias.size()];
  }
  for_each_product(call.input(0), call.input(1), y, call.attributes,
                   [&](std::size_t output, std::size_t input, std::size_t tap) {
                     values[output] += weight[tap] * x[input];
                   });
  write_elements(call.outputs[0], values);
}

std::vector<Value> gradient(Graph& graph, NodeId node, std::span<const Value> gradients) {
  const Value dy = gradients[0];
  const Attributes attributes = graph.attributes(node);
  std::vector<Value> result = no_gradients(graph, node);
  result[0] = derive(graph, node, "gradient_x", "conv2d_input_gradient", {dy, graph.input(node, 1)},
                     attributes, {operand_type(graph, node, 0)});
  result[1] = derive(graph, node, "gradient_weight", "conv2d_weight_gradient",
                     {dy, graph.input(node, 0)}, attributes, {operand_type(graph, node, 1)});
  if (!graph.input(node, 2).is_none())
    result[2] = derive(graph, node, "gradient_bias", "sum", {dy},
                       {{"axes", std::vector<std::int64_t>{0, 2, 3}}});
  return result;
}

const Register registration{Op{
    .name = "conv2d",
    .summary = "two-dimensional convolution (cross-correlation) of images [N,C,H,W]",
    .operands = {{.name = "x", .role = OperandRole::Input},
                 {.name = "weight", .role = OperandRole::Weight},
                 {.name = "bias", .optional = true, .role = OperandRole::Bias}},
    .attributes = conv2d_attributes(),
    .infer = infer,
    .flops = flops,
    .reference = reference,
    .gradient = gradient,
    .examples = {"conv2d(f32[B,3,5,5], f32[4,3,3,3], f32[4]) {pads=[1,1,1,1]}",
                 "conv2d(f32[B,4,6,5], f32[4,1,3,3]) {groups=4, strides=[2,1]}",
                 "conv2d(f32[2,2,5,5], f32[2,2,2,2], none) {dilations=[2,1]}"},
}};

const Register layout{WeightLayout{.name = "conv2d", .result_axis = 1}};

}  // namespace
}  // namespace lathe::ops::conv2d
