#include "lathe/core/op.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/operand_checks.h"
#include "lathe/ops/pooling_windows.h"

// The gradients of pooling. max_pool2d_gradient(dy, x) hands dy to the largest element under each
// window, the first of several equal ones; avg_pool2d_gradient(dy), with the type of x written,
// shares it out.
namespace lathe::ops::pooling_gradient {
namespace {

std::vector<Type> infer(std::string_view op, const OpCall& call, const Type& x) {
  require_floating(op, call, 0);
  require_rank(op, "x", x, 4);
  const Type y = slide_window(op, x, x.axis(1), pooling_window(op, call.attributes()));
  if (call.input(0).shape != y.shape)
    fail("{}: dy {} does not fit x {}: expected shape {}", op, to_text(call.input(0)), to_text(x),
         to_text(y.shape));
  return {{.dtype = call.input(0).dtype, .shape = x.shape}};
}

std::vector<Type> infer_max(const OpCall& call) {
  return infer("max_pool2d_gradient", call, call.input(1));
}
std::vector<Type> infer_average(const OpCall& call) {
  return infer("avg_pool2d_gradient", call, declared_type("avg_pool2d_gradient", call));
}

void max_reference(const KernelCall& call) {
  const std::vector<double> dy = read_elements(call.input(0));
  const std::vector<double> x = read_elements(call.input(1));
  std::vector<double> dx(x.size(), 0.0);
  for_each_window("max_pool2d_gradient", call.input(1), call.input(0), call.attributes,
                  [&](std::size_t output, std::span<const std::size_t> inputs) {
                    std::size_t highest = inputs[0];
                    for (const std::size_t input : inputs) {
                      if (x[highest] != x[highest]) break;  // NaN is what the window gave
                      if (!(x[input] <= x[highest])) highest = input;
                    }
                    dx[highest] += dy[output];
                  });
  write_elements(call.outputs[0], dx);
}

void average_reference(const KernelCall& call) {
  const std::vector<double> dy = read_elements(call.input(0));
  std::vector<double> dx(static_cast<std::size_t>(call.outputs[0].num_elements()), 0.0);
  for_each_window("avg_pool2d_gradient", call.outputs[0], call.input(0), call.attributes,
                  [&](std::size_t output, std::span<const std::size_t> inputs) {
                    const double share =
                        dy[output] / average_divisor(call.attributes, inputs.size());
                    for (const std::size_t input : inputs) dx[input] += share;
                  });
  write_elements(call.outputs[0], dx);
}

Size flops(const OpCall& call) {
  const Window window = pooling_window("pooling", call.attributes());
  return call.input(0).num_elements() * Size(window.kernel[0] * window.kernel[1]);
}

std::vector<AttributeSpec> average_attributes() {
  std::vector<AttributeSpec> result = pooling_attributes();
  result.push_back({.name = "count_include_pad",
                    .default_value = true,
                    .summary = "whether padding counts as zeros in the mean"});
  return result;
}

const Register max_pool2d{Op{
    .name = "max_pool2d_gradient",
    .summary = "the gradient of max_pool2d: dy at the largest element of each window",
    .operands = {{.name = "dy"}, {.name = "x"}},
    .attributes = pooling_attributes(),
    .infer = infer_max,
    .flops = flops,
    .reference = max_reference,
    .is_differentiable = false,
    .examples = {"max_pool2d_gradient(f32[B,2,3,3], f32[B,2,6,6]) {kernel=[2,2]}"},
}};

const Register avg_pool2d{Op{
    .name = "avg_pool2d_gradient",
    .summary = "the gradient of avg_pool2d: a share of dy for each element of the window",
    .operands = {{.name = "dy"}},
    .attributes = average_attributes(),
    .infer = infer_average,
    .flops = flops,
    .reference = average_reference,
    .is_differentiable = false,
    .examples = {"avg_pool2d_gradient(f32[B,2,3,3]) {kernel=[2,2]} : f32[B,2,6,6]"},
}};

}  // namespace
}  // namespace lathe::ops::pooling_gradient
