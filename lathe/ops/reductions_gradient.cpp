#include <limits>

#include "lathe/core/op.h"
#include "lathe/ops/broadcast.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/operand_checks.h"

// The gradients of mean and max, with dy in a shape that broadcasts to that of x (reduced axes have
// size 1):
//   mean_gradient(dy), the type of x written: dy / n, where n elements share one of dy,
//   max_gradient(dy, x): dy at the largest of the elements that share it, in equal parts at
//   several.
namespace lathe::ops::reductions_gradient {
namespace {

Type gradient_type(std::string_view op, const OpCall& call, const Type& x) {
  require_floating(op, call, 0);
  const Type& dy = call.input(0);
  if (dy.rank() > x.rank() || broadcast_shapes("broadcast", dy, x) != x.shape)
    fail("{}: cannot broadcast {} to {}", op, to_text(dy), to_text(x));
  return {.dtype = dy.dtype, .shape = x.shape};
}

std::vector<Type> infer_mean(const OpCall& call) {
  return {gradient_type("mean_gradient", call, declared_type("mean_gradient", call))};
}
std::vector<Type> infer_max(const OpCall& call) {
  return {gradient_type("max_gradient", call, call.input(1))};
}

void mean_reference(const KernelCall& call) {
  const std::vector<double> dy = read_elements(call.input(0));
  const auto source = broadcast_indices(call.input(0).dims(), call.outputs[0].dims());
  const double share =
      source.empty() ? 0.0 : static_cast<double>(dy.size()) / static_cast<double>(source.size());
  std::vector<double> dx(source.size());
  for (std::size_t i = 0; i < dx.size(); ++i)
    dx[i] = dy[static_cast<std::size_t>(source[i])] * share;
  write_elements(call.outputs[0], dx);
}

void max_reference(const KernelCall& call) {
  const std::vector<double> dy = read_elements(call.input(0));
  const std::vector<double> x = read_elements(call.input(1));
  const auto source = broadcast_indices(call.input(0).dims(), call.input(1).dims());
  std::vector<double> highest(dy.size(), -std::numeric_limits<double>::infinity());
  for (std::size_t i = 0; i < x.size(); ++i) {
    double& best = highest[static_cast<std::size_t>(source[i])];
    if (x[i] > best) best = x[i];
  }
  std::vector<double> count(dy.size(), 0.0);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto at = static_cast<std::size_t>(source[i]);
    if (x[i] == highest[at]) count[at] += 1;
  }
  std::vector<double> dx(x.size(), 0.0);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto at = static_cast<std::size_t>(source[i]);
    if (x[i] == highest[at]) dx[i] = dy[at] / count[at];
  }
  write_elements(call.outputs[0], dx);
}

const Register mean{Op{
    .name = "mean_gradient",
    .summary = "the gradient of mean: an equal share of dy for each element of the shape written",
    .operands = {{.name = "dy"}},
    .infer = infer_mean,
    .flops = [](const OpCall& call) { return infer_mean(call)[0].num_elements(); },
    .reference = mean_reference,
    .is_differentiable = false,
    .examples = {"mean_gradient(f32[T,1]) : f32[T,4]",
                 "mean_gradient(f32[2,3,1,1]) : f32[2,3,4,5]"},
}};

const Register max{Op{
    .name = "max_gradient",
    .summary = "the gradient of max: dy at the largest elements of x",
    .operands = {{.name = "dy"}, {.name = "x"}},
    .infer = infer_max,
    .flops = [](const OpCall& call) { return Size(2) * call.input(1).num_elements(); },
    .reference = max_reference,
    .is_differentiable = false,
    .examples = {"max_gradient(f32[T,1], f32[T,4])"},
}};

}  // namespace
}  // namespace lathe::ops::reductions_gradient
