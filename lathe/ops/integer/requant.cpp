#include "lathe/numerics/integer/requant.h"

#include "lathe/ops/axes.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/integer/integer_result.h"
#include "lathe/ops/operand_checks.h"

// requant(x, multipliers?) {multiplier, shift, rounding, axis, width, signed, symmetric, scale}:
// x * multiplier / 2^shift, rounded and saturated. `multipliers` has one for each element of the
// axis (channels) and stands in for the attribute.
namespace lathe::ops::requant {
namespace {

std::vector<Type> infer(const OpCall& call) {
  const Type& x = call.input(0);
  require_integer("requant", "x", x);
  if (call.has(1)) {
    require_integer("requant", "multipliers", call.input(1));
    const std::size_t axis = axis_position("requant", call.attributes().integer("axis"), x);
    require_vector("requant", "multipliers", call.input(1), x.shape[axis]);
  }
  multiplier_attribute(call.attributes(), "multiplier");
  shift_attribute(call.attributes(), "shift");
  integer_rounding(call.attributes());
  return {{.dtype = storage_of(integer_range(call.attributes())), .shape = x.shape}};
}

void reference(const KernelCall& call) {
  const std::vector<std::int64_t> multipliers =
      call.has(1) ? read_integers(call.input(1))
                  : std::vector{multiplier_attribute(call.attributes, "multiplier")};
  const int shift = shift_attribute(call.attributes, "shift");
  const numerics::IntegerRounding rounding = integer_rounding(call.attributes);
  const numerics::IntegerRange range = integer_range(call.attributes);
  // Elements that follow one another on the axes behind the channels' have one multiplier.
  std::size_t run = 1;
  if (call.has(1)) {
    const std::vector<std::int64_t>& dims = call.input(0).dims();
    const std::size_t axis = axis_position(call.attributes.integer("axis"), dims.size());
    run = static_cast<std::size_t>(split_around(dims, axis).inner);
  }
  std::vector<std::int64_t> y = read_integers(call.input(0));
  for (std::size_t i = 0; i < y.size(); ++i)
    y[i] =
        numerics::requant(y[i], multipliers[i / run % multipliers.size()], shift, rounding, range);
  write_integers(call.outputs[0], y);
}

const Register registration{Op{
    .name = "requant",
    .summary = "integers times a multiplier over a power of two, rounded and saturated",
    .operands = {{.name = "x"}, {.name = "multipliers", .optional = true}},
    .attributes = with_integer_result(
        {{.name = "multiplier", .default_value = std::int64_t{1}, .summary = "multiplies x"},
         {.name = "shift",
          .default_value = std::int64_t{0},
          .summary = "the product is divided by 2^shift"},
         rounding_attribute(),
         {.name = "axis",
          .default_value = std::int64_t{-1},
          .summary = "the axis that multipliers lie along"}}),
    .infer = infer,
    .flops = [](const OpCall& call) { return Size(4) * call.input(0).num_elements(); },
    .reference = reference,
    .is_differentiable = false,
    .is_per_token = true,
    .examples = {"requant(i32[T,8]) {shift=5, width=8}",
                 "requant(i32[B,L,3], i32[3]) {shift=1, width=8, rounding=\"half_up\"}",
                 "requant(i32[B,3,2,2], i32[3]) {axis=1, shift=1, width=8}",
                 "requant(i64[T,4]) {multiplier=3, shift=-1, width=4, signed=false}",
                 "requant(i16[T,4]) {shift=4, width=8, symmetric=true, rounding=\"floor\"}"},
}};

}  // namespace
}  // namespace lathe::ops::requant
