#include "lathe/core/op.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/operand_checks.h"

// range() {first, step}: first, first + step, ... as many as the type written has; its size may be
// a symbol.
namespace lathe::ops::range {
namespace {

std::vector<Type> infer(const OpCall& call) {
  const Type& type = declared_type("range", call);
  require_rank("range", "results", type, 1);
  return {type};
}

void reference(const KernelCall& call) {
  const double first = call.attributes.real("first");
  const double step = call.attributes.real("step");
  std::vector<double> values(static_cast<std::size_t>(call.outputs[0].num_elements()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<double>(i) * step;
  write_elements(call.outputs[0], values);
}

const Register registration{Op{
    .name = "range",
    .summary = "numbers at equal distances, as many as the type written has",
    .attributes = {{.name = "first", .default_value = 0.0, .summary = "the first number"},
                   {.name = "step", .default_value = 1.0, .summary = "the distance of two"}},
    .infer = infer,
    .flops = [](const OpCall&) { return Size(0); },
    .reference = reference,
    .is_differentiable = false,
    .examples = {"range() : i64[L]", "range() {first=1, step=-0.5} : f32[4]"},
}};

}  // namespace
}  // namespace lathe::ops::range
