#include <cmath>

#include "lathe/core/op.h"
#include "lathe/ops/axes.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/gradient_nodes.h"
#include "lathe/ops/operand_checks.h"

// normalize_batch(x[N,C,..], weight[C], bias[C]) {eps}: batch_norm as it is trained, with the
// statistics of x itself. For each channel of n elements,
//   y = (x - mean) / sqrt(variance * (n - 1) / n + eps) * weight + bias,
// where the variance, the third result, is the estimate of what x was drawn from: the squares'
// sum divided by n - 1. That is the one to keep for inference; the norm itself uses the mean.
namespace lathe::ops::normalize_batch {
namespace {

std::vector<Type> infer(const OpCall& call) {
  require_floating("normalize_batch", call, 0);
  const Type& x = call.input(0);
  require_rank_at_least("normalize_batch", "x", x, 2);
  require_vector("normalize_batch", "weight", call.input(1), x.axis(1));
  require_vector("normalize_batch", "bias", call.input(2), x.axis(1));
  const Type channels{.dtype = x.dtype, .shape = {x.axis(1)}};
  return {{.dtype = x.dtype, .shape = x.shape}, channels, channels};
}

void reference(const KernelCall& call) {
  std::vector<double> values = read_elements(call.input(0));
  const std::vector<double> weight = read_elements(call.input(1));
  const std::vector<double> bias = read_elements(call.input(2));
  const double eps = call.attributes.real("eps");
  const AxisSplit split = split_around(call.input(0).dims(), 1);
  const std::size_t channels = weight.size();
  const auto channel_of = [&](std::size_t i) {
    return i / static_cast<std::size_t>(split.inner) % channels;
  };
  const auto count = static_cast<double>(split.outer * split.inner);
  if (count == 1) fail("normalize_batch: one element a channel has no variance: expected more");
  std::vector<double> mean(channels, 0.0), variance(channels, 0.0);
  for (std::size_t i = 0; i < values.size(); ++i) mean[channel_of(i)] += values[i] / count;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double distance = values[i] - mean[channel_of(i)];
    variance[channel_of(i)] += distance * distance / (count - 1);
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t c = channel_of(i);
    const double deviation = std::sqrt(variance[c] * (count - 1) / count + eps);
    values[i] = (values[i] - mean[c]) / deviation * weight[c] + bias[c];
  }
  write_elements(call.outputs[0], values);
  write_elements(call.outputs[1], mean);
  write_elements(call.outputs[2], variance);
}

std::vector<Value> gradient(Graph& graph, NodeId node, std::span<const Value> gradients) {
  Value dy = gradients[0];
  if (dy.is_none())
    dy = derive(graph, node, "no_gradient", "full_like", {graph.input(node, 0)}, {{"value", 0.0}},
                {operand_type(graph, node, 0)});
  const Value dx = derive(graph, node, "gradient", "normalize_batch_gradient",
                          {dy, graph.input(node, 0), graph.input(node, 1), Value{node, 1},
                           Value{node, 2}, gradients[1], gradients[2]},
                          graph.attributes(node));
  return {dx, {dx.node, 1}, {dx.node, 2}};
}

const Register registration{Op{
    .name = "normalize_batch",
    .summary = "scale and shift each channel by its own statistics, which are results too",
    .operands = {{.name = "x"}, {.name = "weight"}, {.name = "bias"}},
    .attributes = {{.name = "eps", .default_value = 1e-5, .summary = "added to the variance"}},
    .num_results = 3,
    .infer = infer,
    // A sum, a difference with its square and their sum, a product and a sum.
    .flops = [](const OpCall& call) { return Size(6) * call.input(0).num_elements(); },
    .reference = reference,
    .gradient = gradient,
    .examples = {"normalize_batch(f32[B,3,2,2], f32[3], f32[3])",
                 "normalize_batch(f32[6,4], f32[4], f32[4]) {eps=0.001}"},
}};

}  // namespace
}  // namespace lathe::ops::normalize_batch
