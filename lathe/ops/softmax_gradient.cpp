#include <cmath>

#include "lathe/core/op.h"
#include "lathe/ops/axes.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/operand_checks.h"
#include "lathe/ops/underflow.h"

// The gradients of softmax and log_softmax from their results y, along one axis:
//   softmax_gradient(dy, y) {axis}:      dx = y * (dy - sum of dy * y),
//   log_softmax_gradient(dy, y) {axis}:  dx = dy - exp(y) * sum of dy.
// The former's results below 2^-100 are 0.
namespace lathe::ops::softmax_gradient {
namespace {

std::vector<Type> infer(std::string_view name, const OpCall& call) {
  require_floating(name, call, 0);
  const Type& dy = call.input(0);
  const Type& y = call.input(1);
  require_same_dtype("multiply", dy, y);
  if (dy.shape != y.shape)
    fail("{}: dy {} and y {} differ in shape", name, to_text(dy), to_text(y));
  axis_position(name, call.attributes().integer("axis"), y);
  return {{.dtype = y.dtype, .shape = y.shape}};
}

void reference(const KernelCall& call, bool logarithm) {
  const Tensor& y = call.input(1);
  std::vector<double> dx = read_elements(call.input(0));
  const std::vector<double> results = read_elements(y);
  const AxisSplit split =
      split_around(y.dims(), axis_position(call.attributes.integer("axis"), y.rank()));
  for (std::int64_t outer = 0; outer < split.outer; ++outer) {
    for (std::int64_t inner = 0; inner < split.inner; ++inner) {
      const auto at = [&](std::int64_t i) {
        return static_cast<std::size_t>((outer * split.size + i) * split.inner + inner);
      };
      double sum = 0;
      for (std::int64_t i = 0; i < split.size; ++i)
        sum += dx[at(i)] * (logarithm ? 1.0 : results[at(i)]);
      for (std::int64_t i = 0; i < split.size; ++i)
        dx[at(i)] = logarithm
                        ? dx[at(i)] - std::exp(results[at(i)]) * sum
                        : unless_below(kLeastScoreGradient, results[at(i)] * (dx[at(i)] - sum));
    }
  }
  write_elements(call.outputs[0], dx);
}

Op softmax_gradient_op(const std::string& of, bool logarithm) {
  const std::string name = of + "_gradient";
  return {
      .name = name,
      .summary = "the gradient of " + of + " from its result y",
      .operands = {{.name = "dy"}, {.name = "y"}},
      .attributes = {{.name = "axis",
                      .default_value = -1,
                      .summary = "the axis whose probabilities sum to one"}},
      .infer = [name](const OpCall& call) { return infer(name, call); },
      .flops = [](const OpCall& call) { return Size(4) * call.input(0).num_elements(); },
      .reference = [logarithm](const KernelCall& call) { reference(call, logarithm); },
      .is_differentiable = false,
      .examples = {name + "(f32[T,4], f32[T,4])", name + "(f32[2,3,4], f32[2,3,4]) {axis=1}"},
  };
}

const Register softmax{softmax_gradient_op("softmax", false)};
const Register log_softmax{softmax_gradient_op("log_softmax", true)};

}  // namespace
}  // namespace lathe::ops::softmax_gradient
