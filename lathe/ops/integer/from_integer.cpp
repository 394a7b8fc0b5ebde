#include "lathe/ops/elements.h"
#include "lathe/ops/integer/integer_result.h"
#include "lathe/ops/operand_checks.h"

// from_integer(x) {scale}: where floats leave an integer graph: x * scale, rounded once to a float.
namespace lathe::ops::from_integer {
namespace {

std::vector<Type> infer(const OpCall& call) {
  const Type& x = call.input(0);
  require_integer("from_integer", "x", x);
  const std::size_t count = call.attributes().reals(kScale).size();
  if (count != 1 && (x.rank() == 0 || x.axis(-1) != Size(static_cast<std::int64_t>(count))))
    fail("from_integer: {} scales do not fit {}: expected one, or one for each of the last axis",
         count, to_text(x));
  return {{.dtype = DType::F32, .shape = x.shape}};
}

void reference(const KernelCall& call) {
  const std::vector<std::int64_t> x = read_integers(call.input(0));
  const std::vector<double> scale = call.attributes.reals(kScale);
  std::vector<double> y(x.size());
  for (std::size_t i = 0; i < y.size(); ++i)
    y[i] = static_cast<double>(x[i]) * scale[i % scale.size()];
  write_elements(call.outputs[0], y);
}

const Register registration{Op{
    .name = "from_integer",
    .summary = "integers times their scale",
    .operands = {{.name = "x"}},
    .attributes = {{.name = kScale,
                    .default_value = std::vector<double>{1.0},
                    .summary = "what 1 is worth: one number, or one for each of the last axis",
                    .required = true}},
    .infer = infer,
    .flops = [](const OpCall& call) { return call.input(0).num_elements(); },
    .reference = reference,
    .is_differentiable = false,
    .is_per_token = true,
    .examples = {"from_integer(i8[T,8]) {scale=[0.125]}",
                 "from_integer(i32[B,2]) {scale=[0.5, 0.1]}"},
}};

}  // namespace
}  // namespace lathe::ops::from_integer
