#include <cmath>

#include "lathe/core/op.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/operand_checks.h"

// binary_cross_entropy_gradient(dsum, logits, targets): the gradient of the summed loss with
// respect to the logits, dsum * (sigmoid(logits) - targets).
namespace lathe::ops::binary_cross_entropy_gradient {
namespace {

std::vector<Type> infer(const OpCall& call) {
  require_floating("binary_cross_entropy_gradient", call, 1);
  require_rank("binary_cross_entropy_gradient", "dsum", call.input(0), 0);
  const Type& logits = call.input(1);
  const Type& targets = call.input(2);
  require_same_dtype("compare", logits, targets);
  if (logits.shape != targets.shape)
    fail("binary_cross_entropy_gradient: logits {} and targets {} differ in shape", to_text(logits),
         to_text(targets));
  return {{.dtype = logits.dtype, .shape = logits.shape}};
}

void reference(const KernelCall& call) {
  const double dsum = call.input(0).at(0);
  std::vector<double> values = read_elements(call.input(1));
  const std::vector<double> targets = read_elements(call.input(2));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = dsum * (1 / (1 + std::exp(-values[i])) - targets[i]);
  write_elements(call.outputs[0], values);
}

const Register registration{Op{
    .name = "binary_cross_entropy_gradient",
    .summary = "the gradient of the summed cross-entropy of sigmoids with respect to the logits",
    .operands = {{.name = "dsum"}, {.name = "logits"}, {.name = "targets"}},
    .infer = infer,
    .flops = [](const OpCall& call) { return Size(5) * call.input(1).num_elements(); },
    .reference = reference,
    .is_differentiable = false,
    .examples = {"binary_cross_entropy_gradient(f32[], f32[B,3], f32[B,3])",
                 "binary_cross_entropy_gradient(f32[], f32[T,1], f32[T,1])"},
}};

}  // namespace
}  // namespace lathe::ops::binary_cross_entropy_gradient
