#include <cmath>

#include "lathe/core/op.h"
#include "lathe/ops/axes.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/operand_checks.h"

// batch_norm_gradient(dy, x[N,C,..], weight[C], mean[C], variance[C]) {eps}: the gradients of all
// five operands of batch_norm. Those of the statistics are there because they may be computed from
// x in the same graph. For each channel, with s = 1 / sqrt(variance + eps) and h = (x - mean) * s:
//   dx = dy * s * weight,  dweight = sum of dy * h,  dbias = sum of dy,
//   dmean = -s * weight * sum of dy,  dvariance = -s^2 / 2 * weight * sum of dy * h.
namespace lathe::ops::batch_norm_gradient {
namespace {

std::vector<Type> infer(const OpCall& call) {
  require_floating("batch_norm_gradient", call, 0);
  const Type& dy = call.input(0);
  const Type& x = call.input(1);
  require_rank_at_least("batch_norm_gradient", "x", x, 2);
  if (dy.shape != x.shape)
    fail("batch_norm_gradient: dy {} and x {} differ in shape", to_text(dy), to_text(x));
  const char* const names[] = {"weight", "mean", "variance"};
  for (std::size_t i = 0; i < 3; ++i)
    require_vector("batch_norm_gradient", names[i], call.input(i + 2), x.axis(1));
  const Type channels{.dtype = call.input(2).dtype, .shape = {x.axis(1)}};
  return {{.dtype = x.dtype, .shape = x.shape}, channels, channels, channels, channels};
}

void reference(const KernelCall& call) {
  std::vector<double> dx = read_elements(call.input(0));
  const std::vector<double> x = read_elements(call.input(1));
  const std::vector<double> weight = read_elements(call.input(2));
  const std::vector<double> mean = read_elements(call.input(3));
  const std::vector<double> variance = read_elements(call.input(4));
  const double eps = call.attributes.real("eps");
  const AxisSplit split = split_around(call.input(1).dims(), 1);
  const std::size_t channels = weight.size();
  std::vector<double> dweight(channels, 0.0), dbias(channels, 0.0);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t c = i / static_cast<std::size_t>(split.inner) % channels;
    const double scale = 1.0 / std::sqrt(variance[c] + eps);
    dweight[c] += dx[i] * (x[i] - mean[c]) * scale;
    dbias[c] += dx[i];
    dx[i] *= scale * weight[c];
  }
  std::vector<double> dmean(channels), dvariance(channels);
  for (std::size_t c = 0; c < channels; ++c) {
    const double scale = 1.0 / std::sqrt(variance[c] + eps);
    dmean[c] = -scale * weight[c] * dbias[c];
    dvariance[c] = -0.5 * scale * scale * weight[c] * dweight[c];
  }
  write_elements(call.outputs[0], dx);
  write_elements(call.outputs[1], dweight);
  write_elements(call.outputs[2], dbias);
  write_elements(call.outputs[3], dmean);
  write_elements(call.outputs[4], dvariance);
}

const Register registration{Op{
    .name = "batch_norm_gradient",
    .summary = "the gradients of batch_norm with respect to x, weight, bias, mean and variance",
    .operands =
        {{.name = "dy"}, {.name = "x"}, {.name = "weight"}, {.name = "mean"}, {.name = "variance"}},
    .attributes = {{.name = "eps", .default_value = 1e-5, .summary = "added to the variance"}},
    .num_results = 5,
    .infer = infer,
    // One product for dx, four operations for dweight, a sum for dbias.
    .flops = [](const OpCall& call) { return Size(6) * call.input(0).num_elements(); },
    .reference = reference,
    .is_differentiable = false,
    .examples = {"batch_norm_gradient(f32[B,3,2,2], f32[B,3,2,2], f32[3], f32[3], f32[3])"},
}};

}  // namespace
}  // namespace lathe::ops::batch_norm_gradient
