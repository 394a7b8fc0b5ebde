#include "lathe/numerics/integer/requant.h"
#include "lathe/numerics/integer/rounded_divide.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/integer/integer_result.h"
#include "lathe/ops/integer/integer_softmax_row.h"
#include "lathe/ops/operand_checks.h"

// integer_softmax(x[..,n]) {exponent_multiplier, exponent_shift, multiplier, shift, width, signed,
// symmetric, scale}: over the last axis, exponentials times multiplier over their sum times
// 2^shift, rounded and saturated.
namespace lathe::ops::integer_softmax {
namespace {

std::vector<Type> infer(const OpCall& call) {
  const Type& x = call.input(0);
  require_integer("integer_softmax", "x", x);
  require_rank_at_least("integer_softmax", "x", x, 1);
  exponent_scale(call.attributes());
  multiplier_attribute(call.attributes(), "multiplier");
  if (shift_attribute(call.attributes(), "shift") < 0) fail("shift must not be negative");
  return {{.dtype = storage_of(integer_range(call.attributes())), .shape = x.shape}};
}

void reference(const KernelCall& call) {
  std::vector<std::int64_t> values = read_integers(call.input(0));
  const ExponentScale exponents = exponent_scale(call.attributes);
  const numerics::Integer128 multiplier = multiplier_attribute(call.attributes, "multiplier");
  const int shift = shift_attribute(call.attributes, "shift");
  const numerics::IntegerRange range = integer_range(call.attributes);
  const auto n = static_cast<std::size_t>(call.input(0).dims().back());
  for (std::size_t row = 0; row < values.size(); row += n) {
    const std::span<std::int64_t> x(values.data() + row, n);
    const numerics::Integer128 sum = exponential_row(x, {}, exponents);
    for (std::int64_t& weight : x)
      weight = numerics::requant(
          numerics::rounded_divide(weight * multiplier, sum * (std::int64_t{1} << shift)), 1, 0,
          numerics::IntegerRounding::NearestEven, range);
  }
  write_integers(call.outputs[0], values);
}

const Register registration{Op{
    .name = "integer_softmax",
    .summary = "softmax of integers by a table of exponentials and a rounded division",
    .operands = {{.name = "x"}},
    .attributes = with_integer_result(with_exponent_scale(
        {{.name = "multiplier",
          .default_value = std::int64_t{1},
          .summary = "this over 2^shift is what 1 is in the result"},
         {.name = "shift", .default_value = std::int64_t{0}, .summary = "see multiplier"}})),
    .infer = infer,
    .flops = [](const OpCall& call) { return Size(6) * call.input(0).num_elements(); },
    .reference = reference,
    .is_differentiable = false,
    .is_per_token = true,
    .examples = {"integer_softmax(i32[T,8]) {exponent_multiplier=70000, exponent_shift=12, "
                 "multiplier=255, width=8, signed=false}"},
}};

}  // namespace
}  // namespace lathe::ops::integer_softmax
