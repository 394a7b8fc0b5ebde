#include "lathe/ops/elements.h"
#include "lathe/ops/integer/integer_result.h"
#include "lathe/ops/operand_checks.h"

// integer_linear(x[..,k], weight[n,k], bias[n]) {width, scale}: the sum over i of x[..,i] *
// weight[j,i], plus bias[j], exactly. `width` bits hold every sum that can come out; who writes the
// node has seen to that.
namespace lathe::ops::integer_linear {
namespace {

std::vector<Type> infer(const OpCall& call) {
  const Type& x = call.input(0);
  const Type& weight = call.input(1);
  require_integer("integer_linear", "x", x);
  require_integer("integer_linear", "weight", weight);
  require_rank_at_least("integer_linear", "x", x, 1);
  require_rank("integer_linear", "weight", weight, 2);
  if (x.axis(-1) != weight.axis(1))
    fail("cannot multiply {} by weight {}: inner sizes {} and {} differ", to_text(x),
         to_text(weight), x.axis(-1).text(), weight.axis(1).text());
  if (call.has(2)) {
    require_integer("integer_linear", "bias", call.input(2));
    require_vector("integer_linear", "bias", call.input(2), weight.axis(0));
  }
  Type result{.dtype = storage_of(integer_range(call.attributes())), .shape = x.shape};
  result.shape.back() = weight.axis(0);
  return {result};
}

void reference(const KernelCall& call) {
  const std::vector<std::int64_t> x = read_integers(call.input(0));
  const std::vector<std::int64_t> weight = read_integers(call.input(1));
  const auto n = static_cast<std::size_t>(call.input(1).dim(0));
  const auto k = static_cast<std::size_t>(call.input(1).dim(1));
  const std::vector<std::int64_t> bias =
      call.has(2) ? read_integers(call.input(2)) : std::vector<std::int64_t>(n, 0);
  std::vector<std::int64_t> y(static_cast<std::size_t>(call.outputs[0].num_elements()));
  for (std::size_t row = 0; n > 0 && row < y.size() / n; ++row)
    for (std::size_t j = 0; j < n; ++j) {
      std::int64_t sum = bias[j];
      for (std::size_t i = 0; i < k; ++i) sum += x[row * k + i] * weight[j * k + i];
      y[row * n + j] = sum;
    }
  write_integers(call.outputs[0], y);
}

const Register registration{Op{
    .name = "integer_linear",
    .summary = "exact sums of products of integers, plus bias",
    .operands = {{.name = "x", .role = OperandRole::Input},
                 {.name = "weight", .role = OperandRole::Weight},
                 {.name = "bias", .optional = true, .role = OperandRole::Bias}},
    .attributes = with_integer_result({}),
    .infer = infer,
    .flops =
        [](const OpCall& call) {
          return Size(2) * call.input(0).num_elements() * call.input(1).axis(0);
        },
    .reference = reference,
    .is_differentiable = false,
    .is_per_token = true,
    .examples = {"integer_linear(i8[T,8], i8[16,8], i32[16]) {width=20}",
                 "integer_linear(i16[B,L,4], i8[3,4]) {width=32}",
                 "integer_linear(i16[B,4], i16[2,4], i64[2]) {width=40}"},
}};

}  // namespace
}  // namespace lathe::ops::integer_linear
