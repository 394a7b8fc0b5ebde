#include <cmath>

#include "lathe/core/op.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/operand_checks.h"

// layer_norm_gradient(dy, x, weight) {eps}: the gradients of layer_norm's operands. With s the
// reciprocal deviation of a row, h = (x - mean) * s and g = dy * weight,
//   dx = s * (g - mean(g) - h * mean(g * h)),
//   dweight = sum over rows of dy * h,  dbias = sum over rows of dy.
namespace lathe::ops::layer_norm_gradient {
namespace {

std::vector<Type> infer(const OpCall& call) {
  require_floating("layer_norm_gradient", call, 0);
  const Type& dy = call.input(0);
  const Type& x = call.input(1);
  require_rank_at_least("layer_norm_gradient", "x", x, 1);
  if (dy.shape != x.shape)
    fail("layer_norm_gradient: dy {} and x {} differ in shape", to_text(dy), to_text(x));
  require_vector("layer_norm_gradient", "weight", call.input(2), x.axis(-1));
  const Type vector{.dtype = call.input(2).dtype, .shape = {x.axis(-1)}};
  return {{.dtype = x.dtype, .shape = x.shape}, vector, vector};
}

// The statistics again (4), h (1), g (1), its two means (3), dx (4), dweight (2), dbias (1).
Size flops(const OpCall& call) {
  return Size(16) * call.input(1).num_elements();
}

void reference(const KernelCall& call) {
  const std::vector<double> dy = read_elements(call.input(0));
  const std::vector<double> x = read_elements(call.input(1));
  const std::vector<double> weight = read_elements(call.input(2));
  const double eps = call.attributes.real("eps");
  const std::size_t n = weight.size();
  const auto count = static_cast<double>(n);
  std::vector<double> dx(x.size()), dweight(n, 0.0), dbias(n, 0.0), h(n);
  for (std::size_t row = 0; row < x.size(); row += n) {
    double mean = 0;
    for (std::size_t i = 0; i < n; ++i) mean += x[row + i] / count;
    double variance = 0;
    for (std::size_t i = 0; i < n; ++i)
      variance += (x[row + i] - mean) * (x[row + i] - mean) / count;
    const double scale = 1.0 / std::sqrt(variance + eps);
    double mean_g = 0, mean_gh = 0;
    for (std::size_t i = 0; i < n; ++i) {
      h[i] = (x[row + i] - mean) * scale;
      mean_g += dy[row + i] * weight[i] / count;
      mean_gh += dy[row + i] * weight[i] * h[i] / count;
      dweight[i] += dy[row + i] * h[i];
      dbias[i] += dy[row + i];
    }
    for (std::size_t i = 0; i < n; ++i)
      dx[row + i] = scale * (dy[row + i] * weight[i] - mean_g - h[i] * mean_gh);
  }
  write_elements(call.outputs[0], dx);
  write_elements(call.outputs[1], dweight);
  write_elements(call.outputs[2], dbias);
}

const Register registration{Op{
    .name = "layer_norm_gradient",
    .summary = "the gradients of layer_norm with respect to x, weight and bias",
    .operands = {{.name = "dy"}, {.name = "x"}, {.name = "weight"}},
    .attributes = {{.name = "eps", .default_value = 1e-5, .summary = "added to the variance"}},
    .num_results = 3,
    .infer = infer,
    .flops = flops,
    .reference = reference,
    .is_differentiable = false,
    .examples = {"layer_norm_gradient(f32[T,4], f32[T,4], f32[4])",
                 "layer_norm_gradient(f32[B,L,4], f32[B,L,4], f32[4]) {eps=1e-12}"},
}};

}  // namespace
}  // namespace lathe::ops::layer_norm_gradient
