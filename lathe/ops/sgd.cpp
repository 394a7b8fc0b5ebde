#include <cmath>
#include <cstring>

#include "lathe/core/op.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/optimizer_operands.h"
#include "lathe/ops/underflow.h"

// sgd(param, gradient, velocity, learning_rate, scale) {momentum, weight_decay}: one step of
// gradient descent:
//   velocity' = momentum * velocity + gradient * scale + weight_decay * param,
//   param' = param - learning_rate * velocity'.
// A velocity below the smallest normal float is 0; a scale of NaN leaves both as they are.
namespace lathe::ops::sgd {
namespace {

std::vector<Type> infer(const OpCall& call) {
  return updated_types("sgd", call, 1);
}

void reference(const KernelCall& call) {
  const double rate = call.input(3).at(0);
  const double scale = call.input(4).at(0);
  if (std::isnan(scale)) {
    const std::size_t kept[] = {0, 2};
    for (std::size_t i = 0; i < 2; ++i)
      std::memcpy(call.outputs[i].mutable_bytes(), call.input(kept[i]).bytes(),
                  static_cast<std::size_t>(call.outputs[i].num_bytes()));
    return;
  }
  const double momentum = call.attributes.real("momentum");
  const double decay = call.attributes.real("weight_decay");
  std::vector<double> param = read_elements(call.input(0));
  const std::vector<double> gradient = read_elements(call.input(1));
  std::vector<double> velocity = read_elements(call.input(2));
  for (std::size_t i = 0; i < param.size(); ++i) {
    velocity[i] = unless_below(kSmallestNormal,
                               momentum * velocity[i] + gradient[i] * scale + decay * param[i]);
    param[i] -= rate * velocity[i];
  }
  write_elements(call.outputs[0], param);
  write_elements(call.outputs[1], velocity);
}

const Register registration{Op{
    .name = "sgd",
    .summary = "one step of gradient descent: the parameter and its velocity afterwards",
    .operands = {{.name = "param"},
                 {.name = "gradient"},
                 {.name = "velocity"},
                 {.name = "learning_rate"},
                 {.name = "scale"}},
    .attributes = {{.name = "momentum",
                    .default_value = 0.0,
                    .summary = "share of the velocity that a step keeps"},
                   {.name = "weight_decay",
                    .default_value = 0.0,
                    .summary = "share of the parameter added to its gradient"}},
    .num_results = 2,
    .infer = infer,
    .flops = [](const OpCall& call) { return Size(7) * call.input(0).num_elements(); },
    .reference = reference,
    .is_differentiable = false,
    .examples = {"sgd(f32[16,8], f32[16,8], f32[16,8], f32[], f32[]) {momentum=0.9, "
                 "weight_decay=0.01}"},
}};

}  // namespace
}  // namespace lathe::ops::sgd
