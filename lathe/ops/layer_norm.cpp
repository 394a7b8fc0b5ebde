#include <cmath>

#include "lathe/core/op.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/gradient_nodes.h"
#include "lathe/ops/operand_checks.h"

// layer_norm(x[..,n], weight[n], bias[n]) {eps}: over the last axis,
//   y = (x - mean) / sqrt(variance + eps) * weight + bias,
// where the variance divides by n, not n - 1.
namespace lathe::ops::layer_norm {
namespace {

std::vector<Type> infer(const OpCall& call) {
  require_floating("layer_norm", call, 0);
  const Type& x = call.input(0);
  require_rank_at_least("layer_norm", "x", x, 1);
  require_vector("layer_norm", "weight", call.input(1), x.axis(-1));
  require_vector("layer_norm", "bias", call.input(2), x.axis(-1));
  return {{.dtype = x.dtype, .shape = x.shape}};
}

// Two for the mean and centring, two for the variance, three to scale and shift.
Size flops(const OpCall& call) {
  return Size(7) * call.input(0).num_elements();
}

void reference(const KernelCall& call) {
  std::vector<double> values = read_elements(call.input(0));
  const std::vector<double> weight = read_elements(call.input(1));
  const std::vector<double> bias = read_elements(call.input(2));
  const double eps = call.attributes.real("eps");
  const std::size_t n = weight.size();
  for (std::size_t row = 0; row < values.size(); row += n) {
    const std::span<double> x(values.data() + row, n);
    double mean = 0;
    for (const double value : x) mean += value;
    mean /= static_cast<double>(n);
    double variance = 0;
    for (const double value : x) variance += (value - mean) * (value - mean);
    variance /= static_cast<double>(n);
    const double scale = 1.0 / std::sqrt(variance + eps);
    for (std::size_t i = 0; i < n; ++i) x[i] = (x[i] - mean) * scale * weight[i] + bias[i];
  }
  write_elements(call.outputs[0], values);
}

std::vector<Value> gradient(Graph& graph, NodeId node, std::span<const Value> gradients) {
  const Value dx =
      derive(graph, node, "gradient", "layer_norm_gradient",
             {gradients[0], graph.input(node, 0), graph.input(node, 1)}, graph.attributes(node));
  return {dx, {dx.node, 1}, {dx.node, 2}};
}

const Register registration{Op{
    .name = "layer_norm",
    .summary = "centre and scale the last axis to unit variance, then apply weight and bias",
    .operands = {{.name = "x"}, {.name = "weight"}, {.name = "bias"}},
    .attributes = {{.name = "eps", .default_value = 1e-5, .summary = "added to the variance"}},
    .infer = infer,
    .flops = flops,
    .reference = reference,
    .gradient = gradient,
    .is_per_token = true,
    .examples = {"layer_norm(f32[T,4], f32[4], f32[4])",
                 "layer_norm(f32[B,L,4], f32[4], f32[4]) {eps=1e-12}"},
}};

}  // namespace
}  // namespace lathe::ops::layer_norm
