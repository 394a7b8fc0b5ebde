#include <cmath>

#include "lathe/core/op.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/operand_checks.h"

// running_average(kept, seen, scale) {momentum}: kept + momentum * (seen - kept), what batch norms
// remember of the statistics that they see. A scale of NaN, with which optimizers leave parameters
// as they are, leaves `kept` as it is.
namespace lathe::ops::running_average {
namespace {

std::vector<Type> infer(const OpCall& call) {
  require_floating("running_average", call, 0);
  const Type& kept = call.input(0);
  if (call.input(1).shape != kept.shape)
    fail("running_average: kept {} and seen {} differ in shape", to_text(kept),
         to_text(call.input(1)));
  require_rank("running_average", "scale", call.input(2), 0);
  return {{.dtype = kept.dtype, .shape = kept.shape}};
}

void reference(const KernelCall& call) {
  std::vector<double> kept = read_elements(call.input(0));
  const std::vector<double> seen = read_elements(call.input(1));
  const double momentum = call.attributes.real("momentum");
  if (!std::isnan(call.input(2).at(0)))
    for (std::size_t i = 0; i < kept.size(); ++i) kept[i] += momentum * (seen[i] - kept[i]);
  write_elements(call.outputs[0], kept);
}

const Register registration{Op{
    .name = "running_average",
    .summary = "an average moved towards what was seen last",
    .operands = {{.name = "kept"}, {.name = "seen"}, {.name = "scale"}},
    .attributes = {{.name = "momentum",
                    .default_value = 0.1,
                    .summary = "share of what was seen last"}},
    .infer = infer,
    .flops = [](const OpCall& call) { return Size(3) * call.input(0).num_elements(); },
    .reference = reference,
    .is_differentiable = false,
    .examples = {"running_average(f32[3], f32[3], f32[])"},
}};

}  // namespace
}  // namespace lathe::ops::running_average
