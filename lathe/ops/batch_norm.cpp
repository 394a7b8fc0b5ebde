#include <cmath>

#include "lathe/core/op.h"
#include "lathe/ops/axes.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/gradient_nodes.h"
#include "lathe/ops/operand_checks.h"

// batch_norm(x[N,C,..], weight[C], bias[C], mean[C], variance[C]) {eps}, with the statistics given
// as in inference: for each channel, y = (x - mean) / sqrt(variance + eps) * weight + bias.
namespace lathe::ops::batch_norm {
namespace {

std::vector<Type> infer(const OpCall& call) {
  require_floating("batch_norm", call, 0);
  const Type& x = call.input(0);
  require_rank_at_least("batch_norm", "x", x, 2);
  const char* const names[] = {"weight", "bias", "mean", "variance"};
  for (std::size_t i = 0; i < 4; ++i)
    require_vector("batch_norm", names[i], call.input(i + 1), x.axis(1));
  return {{.dtype = x.dtype, .shape = x.shape}};
}

void reference(const KernelCall& call) {
  std::vector<double> values = read_elements(call.input(0));
  const std::vector<double> weight = read_elements(call.input(1));
  const std::vector<double> bias = read_elements(call.input(2));
  const std::vector<double> mean = read_elements(call.input(3));
  const std::vector<double> variance = read_elements(call.input(4));
  const double eps = call.attributes.real("eps");
  const AxisSplit split = split_around(call.input(0).dims(), 1);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t c =
        i / static_cast<std::size_t>(split.inner) % static_cast<std::size_t>(split.size);
    values[i] = (values[i] - mean[c]) / std::sqrt(variance[c] + eps) * weight[c] + bias[c];
  }
  write_elements(call.outputs[0], values);
}

std::vector<Value> gradient(Graph& graph, NodeId node, std::span<const Value> gradients) {
  const Value dx = derive(graph, node, "gradient", "batch_norm_gradient",
                          {gradients[0], graph.input(node, 0), graph.input(node, 1),
                           graph.input(node, 3), graph.input(node, 4)},
                          graph.attributes(node));
  return {dx, {dx.node, 1}, {dx.node, 2}, {dx.node, 3}, {dx.node, 4}};
}

const Register registration{Op{
    .name = "batch_norm",
    .summary = "scale and shift each channel by given statistics, weight and bias",
    .operands = {{.name = "x"},
                 {.name = "weight"},
                 {.name = "bias"},
                 {.name = "mean", .role = OperandRole::Statistic},
                 {.name = "variance", .role = OperandRole::Statistic}},
    .attributes = {{.name = "eps", .default_value = 1e-5, .summary = "added to the variance"}},
    .infer = infer,
    // Folded into one factor and one offset for each channel.
    .flops = [](const OpCall& call) { return Size(2) * call.input(0).num_elements(); },
    .reference = reference,
    .gradient = gradient,
    .examples = {"batch_norm(f32[B,3,2,2], f32[3], f32[3], f32[3], f32[3])",
                 "batch_norm(f32[B,4], f32[4], f32[4], f32[4], f32[4]) {eps=0.001}"},
}};

}  // namespace
}  // namespace lathe::ops::batch_norm
