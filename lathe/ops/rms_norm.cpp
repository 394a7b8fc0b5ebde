#include <cmath>

#include "lathe/core/op.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/gradient_nodes.h"
#include "lathe/ops/operand_checks.h"

// rms_norm(x[..,n], weight[n]) {eps}: over the last axis, y = x / sqrt(mean of x^2 + eps) * weight.
namespace lathe::ops::rms_norm {
namespace {

std::vector<Type> infer(const OpCall& call) {
  require_floating("rms_norm", call, 0);
  const Type& x = call.input(0);
  require_rank_at_least("rms_norm", "x", x, 1);
  require_vector("rms_norm", "weight", call.input(1), x.axis(-1));
  return {{.dtype = x.dtype, .shape = x.shape}};
}

// Square and sum, then scale twice.
Size flops(const OpCall& call) {
  return Size(4) * call.input(0).num_elements();
}

void reference(const KernelCall& call) {
  std::vector<double> values = read_elements(call.input(0));
  const std::vector<double> weight = read_elements(call.input(1));
  const double eps = call.attributes.real("eps");
  const std::size_t n = weight.size();
  for (std::size_t row = 0; row < values.size(); row += n) {
    const std::span<double> x(values.data() + row, n);
    double squares = 0;
    for (const double value : x) squares += value * value;
    const double scale = 1.0 / std::sqrt(squares / static_cast<double>(n) + eps);
    for (std::size_t i = 0; i < n; ++i) x[i] *= scale * weight[i];
  }
  write_elements(call.outputs[0], values);
}

std::vector<Value> gradient(Graph& graph, NodeId node, std::span<const Value> gradients) {
  const Value dx =
      derive(graph, node, "gradient", "rms_norm_gradient",
             {gradients[0], graph.input(node, 0), graph.input(node, 1)}, graph.attributes(node));
  return {dx, {dx.node, 1}};
}

const Register registration{Op{
    .name = "rms_norm",
    .summary = "scale the last axis to a mean square of one, then apply weight",
    .operands = {{.name = "x"}, {.name = "weight"}},
    .attributes = {{.name = "eps", .default_value = 1e-6, .summary = "added to the mean square"}},
    .infer = infer,
    .flops = flops,
    .reference = reference,
    .gradient = gradient,
    .is_per_token = true,
    .examples = {"rms_norm(f32[T,4], f32[4])", "rms_norm(f32[B,L,4], f32[4]) {eps=1e-5}"},
}};

}  // namespace
}  // namespace lathe::ops::rms_norm
