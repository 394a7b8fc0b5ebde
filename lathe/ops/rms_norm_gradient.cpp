#include <cmath>

#include "lathe/core/op.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/operand_checks.h"

// rms_norm_gradient(dy, x, weight) {eps}: the gradients of rms_norm's operands. With s the
// reciprocal root mean square of a row, h = x * s and g = dy * weight,
//   dx = s * (g - h * mean(g * h)),  dweight = sum over rows of dy * h.
namespace lathe::ops::rms_norm_gradient {
namespace {

std::vector<Type> infer(const OpCall& call) {
  require_floating("rms_norm_gradient", call, 0);
  const Type& dy = call.input(0);
  const Type& x = call.input(1);
  require_rank_at_least("rms_norm_gradient", "x", x, 1);
  if (dy.shape != x.shape)
    fail("rms_norm_gradient: dy {} and x {} differ in shape", to_text(dy), to_text(x));
  require_vector("rms_norm_gradient", "weight", call.input(2), x.axis(-1));
  return {{.dtype = x.dtype, .shape = x.shape},
          {.dtype = call.input(2).dtype, .shape = {x.axis(-1)}}};
}

void reference(const KernelCall& call) {
  const std::vector<double> dy = read_elements(call.input(0));
  const std::vector<double> x = read_elements(call.input(1));
  const std::vector<double> weight = read_elements(call.input(2));
  const double eps = call.attributes.real("eps");
  const std::size_t n = weight.size();
  const auto count = static_cast<double>(n);
  std::vector<double> dx(x.size()), dweight(n, 0.0);
  for (std::size_t row = 0; row < x.size(); row += n) {
    double mean_square = 0;
    for (std::size_t i = 0; i < n; ++i) mean_square += x[row + i] * x[row + i] / count;
    const double scale = 1.0 / std::sqrt(mean_square + eps);
    double mean_gh = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double h = x[row + i] * scale;
      mean_gh += dy[row + i] * weight[i] * h / count;
      dweight[i] += dy[row + i] * h;
    }
    for (std::size_t i = 0; i < n; ++i)
      dx[row + i] = scale * (dy[row + i] * weight[i] - x[row + i] * scale * mean_gh);
  }
  write_elements(call.outputs[0], dx);
  write_elements(call.outputs[1], dweight);
}

const Register registration{Op{
    .name = "rms_norm_gradient",
    .summary = "the gradients of rms_norm with respect to x and weight",
    .operands = {{.name = "dy"}, {.name = "x"}, {.name = "weight"}},
    .attributes = {{.name = "eps", .default_value = 1e-6, .summary = "added to the mean square"}},
    .num_results = 2,
    .infer = infer,
    // The mean square (2), h and g (2), their mean (2), dx (3), dweight (2).
    .flops = [](const OpCall& call) { return Size(11) * call.input(1).num_elements(); },
    .reference = reference,
    .is_differentiable = false,
    .examples = {"rms_norm_gradient(f32[T,4], f32[T,4], f32[4])",
                 "rms_norm_gradient(f32[B,L,4], f32[B,L,4], f32[4]) {eps=1e-5}"},
}};

}  // namespace
}  // namespace lathe::ops::rms_norm_gradient
