#include "lathe/core/op.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/gradient_nodes.h"
#include "lathe/ops/operand_checks.h"
#include "lathe/ops/pooling_windows.h"

// max_pool2d and avg_pool2d(x[N,C,H,W]) {kernel, strides, pads}: the largest element or the mean of
// each window. Padding is never the largest; the mean counts it as zeros, or leaves it out when
// count_include_pad is false. Windows that do not fit are left out (no ceiling mode).
namespace lathe::ops::pooling {
namespace {

std::vector<Type> infer(std::string_view op, const OpCall& call) {
  if (op != "max_pool2d") require_floating(op, call, 0);  // a largest integer is one
  const Type& x = call.input(0);
  require_rank(op, "x", x, 4);
  return {slide_window(op, x, x.axis(1), pooling_window(op, call.attributes()))};
}

Size flops(std::string_view op, const OpCall& call) {
  const Window window = pooling_window(op, call.attributes());
  return infer(op, call)[0].num_elements() * Size(window.kernel[0] * window.kernel[1]);
}

void max_reference(const KernelCall& call) {
  const std::vector<double> x = read_elements(call.input(0));
  std::vector<double> y(static_cast<std::size_t>(call.outputs[0].num_elements()));
  for_each_window("max_pool2d", call.input(0), call.outputs[0], call.attributes,
                  [&](std::size_t output, std::span<const std::size_t> inputs) {
                    double highest = x[inputs[0]];
                    for (const std::size_t input : inputs)  // NaN stays
                      highest = highest != highest || highest > x[input] ? highest : x[input];
                    y[output] = highest;
                  });
  write_elements(call.outputs[0], y);
}

void average_reference(const KernelCall& call) {
  const std::vector<double> x = read_elements(call.input(0));
  std::vector<double> y(static_cast<std::size_t>(call.outputs[0].num_elements()), 0.0);
  for_each_window("avg_pool2d", call.input(0), call.outputs[0], call.attributes,
                  [&](std::size_t output, std::span<const std::size_t> inputs) {
                    for (const std::size_t input : inputs) y[output] += x[input];
                    y[output] /= average_divisor(call.attributes, inputs.size());
                  });
  write_elements(call.outputs[0], y);
}

using GradientRule = std::vector<Value> (*)(Graph&, NodeId, std::span<const Value>);

std::vector<Value> max_gradient(Graph& graph, NodeId node, std::span<const Value> gradients) {
  return {derive(graph, node, "gradient_x", "max_pool2d_gradient",
                 {gradients[0], graph.input(node, 0)}, graph.attributes(node))};
}

std::vector<Value> average_gradient(Graph& graph, NodeId node, std::span<const Value> gradients) {
  return {derive(graph, node, "gradient_x", "avg_pool2d_gradient", {gradients[0]},
                 graph.attributes(node), {operand_type(graph, node, 0)})};
}

Op pooling_op(const std::string& name, const std::string& summary,
              void (*reference_kernel)(const KernelCall&), GradientRule gradient) {
  return {
      .name = name,
      .summary = summary,
      .operands = {{.name = "x"}},
      .attributes = pooling_attributes(),
      .infer = [name](const OpCall& call) { return infer(name, call); },
      .flops = [name](const OpCall& call) { return flops(name, call); },
      .reference = reference_kernel,
      .gradient = gradient,
      .examples = {name + "(f32[B,2,6,6]) {kernel=[2,2]}",
                   name + "(f32[1,2,5,5]) {kernel=[3,3], strides=[2,2], pads=[1,1,1,1]}"},
  };
}

Op average_pooling() {
  Op op = pooling_op("avg_pool2d", "the mean of each window", average_reference, average_gradient);
  op.attributes.push_back({.name = "count_include_pad",
                           .default_value = true,
                           .summary = "whether padding counts as zeros in the mean"});
  op.examples.push_back(
      "avg_pool2d(f32[1,1,3,3]) {kernel=[2,2], pads=[1,1,0,0], count_include_pad=false}");
  return op;
}

const Register max_pool2d{
    pooling_op("max_pool2d", "the largest element of each window", max_reference, max_gradient)};
const Register avg_pool2d{average_pooling()};

}  // namespace
}  // namespace lathe::ops::pooling
