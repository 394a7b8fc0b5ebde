#include "lathe/ops/broadcast.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/integer/integer_result.h"
#include "lathe/ops/operand_checks.h"

// integer_add(a, b) {multiplier_a, multiplier_b, width, scale}: a * multiplier_a + b *
// multiplier_b, exactly, with broadcasting. The multipliers bring both to one scale.
namespace lathe::ops::integer_add {
namespace {

std::vector<Type> infer(const OpCall& call) {
  const Type &a = call.input(0), &b = call.input(1);
  require_integer("integer_add", "a", a);
  require_integer("integer_add", "b", b);
  multiplier_attribute(call.attributes(), "multiplier_a");
  multiplier_attribute(call.attributes(), "multiplier_b");
  return {{.dtype = storage_of(integer_range(call.attributes())),
           .shape = broadcast_shapes("integer_add", a, b)}};
}

void reference(const KernelCall& call) {
  const std::int64_t multiplier_a = multiplier_attribute(call.attributes, "multiplier_a");
  const std::int64_t multiplier_b = multiplier_attribute(call.attributes, "multiplier_b");
  const std::vector<std::int64_t> a = read_integers(call.input(0));
  const std::vector<std::int64_t> b = read_integers(call.input(1));
  const auto a_index = broadcast_indices(call.input(0).dims(), call.outputs[0].dims());
  const auto b_index = broadcast_indices(call.input(1).dims(), call.outputs[0].dims());
  std::vector<std::int64_t> y(a_index.size());
  for (std::size_t i = 0; i < y.size(); ++i)
    y[i] = a[static_cast<std::size_t>(a_index[i])] * multiplier_a +
           b[static_cast<std::size_t>(b_index[i])] * multiplier_b;
  write_integers(call.outputs[0], y);
}

const Register registration{Op{
    .name = "integer_add",
    .summary = "exact sum of two integer tensors brought to one scale",
    .operands = {{.name = "a"}, {.name = "b"}},
    .attributes = with_integer_result(
        {{.name = "multiplier_a", .default_value = std::int64_t{1}, .summary = "multiplies a"},
         {.name = "multiplier_b", .default_value = std::int64_t{1}, .summary = "multiplies b"}}),
    .infer = infer,
    .flops = [](const OpCall& call) { return Size(3) * infer(call)[0].num_elements(); },
    .reference = reference,
    .is_differentiable = false,
    .is_per_token = true,
    .examples = {"integer_add(i16[T,8], i16[T,8]) {multiplier_b=4, width=20}",
                 "integer_add(i8[B,L,4], i16[4]) {multiplier_a=3, width=40}"},
}};

}  // namespace
}  // namespace lathe::ops::integer_add
