#include <cmath>
#include <limits>

#include "lathe/core/op.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/operand_checks.h"

// gradient_scale(total_squares, count) {max_norm}: gradients are of a summed loss; this is what
// turns them into the clipped gradient of the mean. With norm = sqrt(total_squares) / count,
//   scale = 1 / count, times max_norm / (norm + 1e-6) where norm exceeds max_norm > 0.
// A norm that is not finite (an overflow, an empty batch) makes the scale NaN, on which optimizers
// leave everything as it is.
namespace lathe::ops::gradient_scale {
namespace {

std::vector<Type> infer(const OpCall& call) {
  const char* const names[] = {"total_squares", "count"};
  for (std::size_t i = 0; i < 2; ++i) {
    require_floating("gradient_scale", call, i);
    require_rank("gradient_scale", names[i], call.input(i), 0);
  }
  if (!(call.attributes().real("max_norm") >= 0))
    fail("gradient_scale: max_norm={} must not be negative", call.attributes().real("max_norm"));
  const Type scalar{.dtype = call.input(0).dtype, .shape = {}};
  return {scalar, scalar};
}

void reference(const KernelCall& call) {
  const double count = call.input(1).at(0);
  const double max_norm = call.attributes.real("max_norm");
  const double norm = std::sqrt(call.input(0).at(0)) / count;
  double scale = 1.0 / count;
  if (max_norm > 0 && norm > max_norm) scale *= max_norm / (norm + 1e-6);
  if (!std::isfinite(norm)) scale = std::numeric_limits<double>::quiet_NaN();
  write_elements(call.outputs[0], std::span(&scale, 1));
  write_elements(call.outputs[1], std::span(&norm, 1));
}

const Register registration{Op{
    .name = "gradient_scale",
    .summary = "the factor from summed to mean, clipped gradients, and the mean gradient's norm",
    .operands = {{.name = "total_squares"}, {.name = "count"}},
    .attributes = {{.name = "max_norm",
                    .default_value = 0.0,
                    .summary = "the largest norm of the mean gradient; 0: no limit"}},
    .num_results = 2,
    .infer = infer,
    .flops = [](const OpCall&) { return Size(5); },
    .reference = reference,
    .is_differentiable = false,
    .examples = {"gradient_scale(f32[], f32[])", "gradient_scale(f32[], f32[]) {max_norm=1.0}"},
}};

}  // namespace
}  // namespace lathe::ops::gradient_scale
