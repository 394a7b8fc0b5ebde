#include <cmath>
#include <cstring>

#include "lathe/core/op.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/operand_checks.h"
#include "lathe/ops/optimizer_operands.h"
#include "lathe/ops/random_operand.h"
#include "lathe/ops/underflow.h"

// adamw(param, gradient, m, v, learning_rate, scale, random) {beta1, beta2, eps, weight_decay}: one
// step of AdamW (Loshchilov and Hutter, "Decoupled weight decay regularization"), with
// g = gradient * scale and t = random[2], which counts from 1:
//   param is first multiplied by 1 - learning_rate * weight_decay,
//   m' = beta1 * m + (1 - beta1) * g,  v' = beta2 * v + (1 - beta2) * g^2,
//   param' = param - learning_rate * m'/(1 - beta1^t) / (sqrt(v'/(1 - beta2^t)) + eps).
// Moments below the smallest normal float are 0; a scale of NaN leaves all three as they are.
namespace lathe::ops::adamw {
namespace {

std::vector<Type> infer(const OpCall& call) {
  for (const char* name : {"beta1", "beta2"}) {
    const double beta = call.attributes().real(name);
    if (!(beta >= 0 && beta < 1)) fail("adamw: {}={} must be at least 0 and below 1", name, beta);
  }
  require_random("adamw", call.input(6));
  return updated_types("adamw", call, 2);
}

void reference(const KernelCall& call) {
  const double rate = call.input(4).at(0);
  const double scale = call.input(5).at(0);
  if (std::isnan(scale)) {
    const std::size_t kept[] = {0, 2, 3};
    for (std::size_t i = 0; i < 3; ++i)
      std::memcpy(call.outputs[i].mutable_bytes(), call.input(kept[i]).bytes(),
                  static_cast<std::size_t>(call.outputs[i].num_bytes()));
    return;
  }
  const auto step = static_cast<double>(read_step(call.input(6)));
  const double beta1 = call.attributes.real("beta1");
  const double beta2 = call.attributes.real("beta2");
  const double eps = call.attributes.real("eps");
  const double decay = 1.0 - rate * call.attributes.real("weight_decay");
  const double correction1 = 1.0 - std::pow(beta1, step);
  const double correction2 = 1.0 - std::pow(beta2, step);
  std::vector<double> param = read_elements(call.input(0));
  const std::vector<double> gradient = read_elements(call.input(1));
  std::vector<double> m = read_elements(call.input(2));
  std::vector<double> v = read_elements(call.input(3));
  for (std::size_t i = 0; i < param.size(); ++i) {
    const double g = gradient[i] * scale;
    m[i] = unless_below(kSmallestNormal, beta1 * m[i] + (1.0 - beta1) * g);
    v[i] = unless_below(kSmallestNormal, beta2 * v[i] + (1.0 - beta2) * g * g);
    const double denominator = std::sqrt(v[i] / correction2) + eps;
    param[i] = param[i] * decay - rate * (m[i] / correction1) / denominator;
  }
  write_elements(call.outputs[0], param);
  write_elements(call.outputs[1], m);
  write_elements(call.outputs[2], v);
}

const Register registration{Op{
    .name = "adamw",
    .summary = "one step of AdamW: the parameter and its two moments afterwards",
    .operands = {{.name = "param"},
                 {.name = "gradient"},
                 {.name = "m"},
                 {.name = "v"},
                 {.name = "learning_rate"},
                 {.name = "scale"},
                 {.name = "random"}},
    .attributes = {{.name = "beta1", .default_value = 0.9, .summary = "how slowly m forgets"},
                   {.name = "beta2", .default_value = 0.999, .summary = "how slowly v forgets"},
                   {.name = "eps", .default_value = 1e-8, .summary = "added to the denominator"},
                   {.name = "weight_decay",
                    .default_value = 0.0,
                    .summary = "share of the parameter that a step of rate 1 takes away"}},
    .num_results = 3,
    .infer = infer,
    .flops = [](const OpCall& call) { return Size(14) * call.input(0).num_elements(); },
    .reference = reference,
    .is_differentiable = false,
    .examples = {"adamw(f32[16,8], f32[16,8], f32[16,8], f32[16,8], f32[], f32[], i32[3]) "
                 "{weight_decay=0.01}"},
}};

}  // namespace
}  // namespace lathe::ops::adamw
