#include "lathe/core/op.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/operand_checks.h"

// gate_gradient(dy, x) {minimum, maximum}: dy where x lies between the two, else 0: the
// straight-through gradient of a rounding that clips.
namespace lathe::ops::gate_gradient {
namespace {

std::vector<Type> infer(const OpCall& call) {
  require_floating("gate_gradient", call, 0);
  const Type& dy = call.input(0);
  const Type& x = call.input(1);
  require_same_dtype("compare", dy, x);
  if (dy.shape != x.shape)
    fail("gate_gradient: dy {} and x {} differ in shape", to_text(dy), to_text(x));
  return {{.dtype = x.dtype, .shape = x.shape}};
}

void reference(const KernelCall& call) {
  std::vector<double> dx = read_elements(call.input(0));
  const std::vector<double> x = read_elements(call.input(1));
  const double minimum = call.attributes.real("minimum"), maximum = call.attributes.real("maximum");
  for (std::size_t i = 0; i < x.size(); ++i)
    if (x[i] < minimum || x[i] > maximum) dx[i] = 0;
  write_elements(call.outputs[0], dx);
}

const Register registration{Op{
    .name = "gate_gradient",
    .summary = "dy where x lies between two numbers, else 0",
    .operands = {{.name = "dy"}, {.name = "x"}},
    .attributes = {{.name = "minimum",
                    .default_value = 0.0,
                    .summary = "the least x that passes",
                    .required = true},
                   {.name = "maximum",
                    .default_value = 0.0,
                    .summary = "the largest x that passes",
                    .required = true}},
    .infer = infer,
    .flops = [](const OpCall& call) { return call.input(0).num_elements(); },
    .reference = reference,
    .is_differentiable = false,
    .is_per_token = true,
    .examples = {"gate_gradient(f32[T,4], f32[T,4]) {minimum=0.5, maximum=1.0}"},
}};

}  // namespace
}  // namespace lathe::ops::gate_gradient
