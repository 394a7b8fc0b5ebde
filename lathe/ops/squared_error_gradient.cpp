#include "lathe/core/op.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/operand_checks.h"

// squared_error_gradient(dsum, prediction, target): the gradient of the summed error with respect
// to the prediction, 2 * dsum * (prediction - target).
namespace lathe::ops::squared_error_gradient {
namespace {

std::vector<Type> infer(const OpCall& call) {
  require_floating("squared_error_gradient", call, 1);
  require_rank("squared_error_gradient", "dsum", call.input(0), 0);
  const Type& prediction = call.input(1);
  const Type& target = call.input(2);
  require_same_dtype("compare", prediction, target);
  if (prediction.shape != target.shape)
    fail("squared_error_gradient: prediction {} and target {} differ in shape", to_text(prediction),
         to_text(target));
  return {{.dtype = prediction.dtype, .shape = prediction.shape}};
}

void reference(const KernelCall& call) {
  const double dsum = call.input(0).at(0);
  std::vector<double> values = read_elements(call.input(1));
  const std::vector<double> target = read_elements(call.input(2));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 2.0 * dsum * (values[i] - target[i]);
  write_elements(call.outputs[0], values);
}

const Register registration{Op{
    .name = "squared_error_gradient",
    .summary = "the gradient of the summed squared error with respect to the prediction",
    .operands = {{.name = "dsum"}, {.name = "prediction"}, {.name = "target"}},
    .infer = infer,
    .flops = [](const OpCall& call) { return Size(2) * call.input(1).num_elements(); },
    .reference = reference,
    .is_differentiable = false,
    .examples = {"squared_error_gradient(f32[], f32[B,1], f32[B,1])",
                 "squared_error_gradient(f32[], f32[T,4], f32[T,4])"},
}};

}  // namespace
}  // namespace lathe::ops::squared_error_gradient
