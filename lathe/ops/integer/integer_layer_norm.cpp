#include "lathe/numerics/integer/normalization.h"
#include "lathe/numerics/integer/requant.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/integer/integer_result.h"
#include "lathe/ops/operand_checks.h"

// integer_layer_norm(x[..,n], weight[n], bias[n]) {epsilon, root_fraction, fraction, shift,
// rounding, width, signed, symmetric, scale}: over the last axis,
//   z = (x - mean) / sqrt(variance + epsilon) in 2^-fraction (numerics/integer/normalization.h),
//   y = (z * weight + bias) / 2^shift, rounded and saturated.
namespace lathe::ops::integer_layer_norm {
namespace {

numerics::Normalization normalization(const AttributeReader& attributes, std::int64_t size) {
  const numerics::Normalization result{
      .size = size,
      .epsilon = attributes.integer("epsilon"),
      .root_fraction = static_cast<int>(attributes.integer("root_fraction")),
      .fraction = static_cast<int>(attributes.integer("fraction"))};
  if (result.epsilon < 0) fail("epsilon {} must not be negative", result.epsilon);
  for (const char* const name : {"root_fraction", "fraction"})
    if (attributes.integer(name) < 0 || attributes.integer(name) > 30)
      fail("{} {} must be 0 to 30", name, attributes.integer(name));
  return result;
}

std::vector<Type> infer(const OpCall& call) {
  const Type& x = call.input(0);
  require_integer("integer_layer_norm", "x", x);
  require_rank_at_least("integer_layer_norm", "x", x, 1);
  for (const std::size_t i : {1, 2}) {
    require_integer("integer_layer_norm", i == 1 ? "weight" : "bias", call.input(i));
    require_vector("integer_layer_norm", i == 1 ? "weight" : "bias", call.input(i), x.axis(-1));
  }
  normalization(call.attributes(), 1);
  shift_attribute(call.attributes(), "shift");
  integer_rounding(call.attributes());
  return {{.dtype = storage_of(integer_range(call.attributes())), .shape = x.shape}};
}

void reference(const KernelCall& call) {
  std::vector<std::int64_t> values = read_integers(call.input(0));
  const std::vector<std::int64_t> weight = read_integers(call.input(1));
  const std::vector<std::int64_t> bias = read_integers(call.input(2));
  const std::size_t n = weight.size();
  const numerics::Normalization norm = normalization(call.attributes, static_cast<std::int64_t>(n));
  const int shift = shift_attribute(call.attributes, "shift");
  const numerics::IntegerRounding rounding = integer_rounding(call.attributes);
  const numerics::IntegerRange range = integer_range(call.attributes);
  for (std::size_t row = 0; row < values.size(); row += n) {
    const std::span<std::int64_t> x(values.data() + row, n);
    const numerics::RowMoments moments = numerics::row_moments(x, norm);
    for (std::size_t i = 0; i < n; ++i) {
      const numerics::Integer128 z = numerics::normalized(x[i], moments, norm);
      x[i] = numerics::requant(z * weight[i] + bias[i], 1, shift, rounding, range);
    }
  }
  write_integers(call.outputs[0], values);
}

const Register registration{Op{
    .name = "integer_layer_norm",
    .summary = "layer norm by integer sums, square root and division",
    .operands = {{.name = "x"}, {.name = "weight"}, {.name = "bias"}},
    .attributes =
        with_integer_result({{.name = "epsilon",
                              .default_value = std::int64_t{0},
                              .summary = "added to the variance times the square of a row's size"},
                             {.name = "root_fraction",
                              .default_value = std::int64_t{4},
                              .summary = "bits of the square root behind its point"},
                             {.name = "fraction",
                              .default_value = std::int64_t{12},
                              .summary = "bits of a normalized element behind its point"},
                             {.name = "shift",
                              .default_value = std::int64_t{0},
                              .summary = "the sum with the bias is divided by 2^shift"},
                             rounding_attribute()}),
    .infer = infer,
    .flops = [](const OpCall& call) { return Size(8) * call.input(0).num_elements(); },
    .reference = reference,
    .is_differentiable = false,
    .is_per_token = true,
    .examples = {"integer_layer_norm(i16[T,4], i32[4], i32[4]) {shift=7, width=8}",
                 "integer_layer_norm(i8[B,L,4], i32[4], i64[4]) {epsilon=3, shift=4, width=16}"},
}};

}  // namespace
}  // namespace lathe::ops::integer_layer_norm
