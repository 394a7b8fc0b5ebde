#include <cmath>

#include "lathe/core/op.h"
#include "lathe/ops/broadcast.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/operand_checks.h"

// binary_map_gradient(dy, a, b) {function, operand}: dy * df/da (operand 0) or dy * df/db (1) for
// the binary maps whose derivatives are no simple op, in the shape of dy. Where a = b, maximum and
// minimum give each operand half, as other frameworks do.
namespace lathe::ops::binary_map_gradient {
namespace {

struct Derivatives {
  std::string name;
  double (*by_a)(double a, double b);
  double (*by_b)(double a, double b);
};

double step(double difference) {
  return difference > 0 ? 1.0 : difference < 0 ? 0.0 : 0.5;
}
// x^0 is 1 even at x = 0, and has no slope.
double pow_by_base(double a, double b) {
  return b == 0 ? 0.0 : b * std::pow(a, b - 1.0);
}
// 0^b is 0 for all positive b.
double pow_by_exponent(double a, double b) {
  return a == 0 && b >= 0 ? 0.0 : std::pow(a, b) * std::log(a);
}

const Derivatives& derivatives_of(const AttributeReader& attributes) {
  static const std::vector<Derivatives> all = {
      {"maximum", [](double a, double b) { return step(a - b); },
       [](double a, double b) { return step(b - a); }},
      {"minimum", [](double a, double b) { return step(b - a); },
       [](double a, double b) { return step(a - b); }},
      {"pow", pow_by_base, pow_by_exponent},
  };
  std::vector<std::string> known;
  for (const Derivatives& derivatives : all) {
    if (derivatives.name == attributes.text("function")) return derivatives;
    known.push_back(derivatives.name);
  }
  throw unknown_name("function", attributes.text("function"), known);
}

std::vector<Type> infer(const OpCall& call) {
  require_floating("binary_map_gradient", call, 0);
  const Type& dy = call.input(0);
  const Type& a = call.input(1);
  const Type& b = call.input(2);
  require_same_dtype("multiply", dy, a);
  require_same_dtype("multiply", dy, b);
  if (broadcast_shapes("combine", a, b) != dy.shape)
    fail("binary_map_gradient: dy {} is not the common shape of {} and {}", to_text(dy), to_text(a),
         to_text(b));
  derivatives_of(call.attributes());
  const std::int64_t operand = call.attributes().integer("operand");
  if (operand != 0 && operand != 1) fail("binary_map_gradient: operand {} must be 0 or 1", operand);
  return {{.dtype = dy.dtype, .shape = dy.shape}};
}

void reference(const KernelCall& call) {
  std::vector<double> result = read_elements(call.input(0));
  const std::vector<double> a = read_elements(call.input(1));
  const std::vector<double> b = read_elements(call.input(2));
  const auto a_index = broadcast_indices(call.input(1).dims(), call.input(0).dims());
  const auto b_index = broadcast_indices(call.input(2).dims(), call.input(0).dims());
  const Derivatives& derivatives = derivatives_of(call.attributes);
  const auto derivative =
      call.attributes.integer("operand") == 0 ? derivatives.by_a : derivatives.by_b;
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] *= derivative(a[static_cast<std::size_t>(a_index[i])],
                            b[static_cast<std::size_t>(b_index[i])]);
  write_elements(call.outputs[0], result);
}

const Register registration{Op{
    .name = "binary_map_gradient",
    .summary = "dy times the derivative of a binary map with respect to one operand",
    .operands = {{.name = "dy"}, {.name = "a"}, {.name = "b"}},
    .attributes = {{.name = "function",
                    .default_value = std::string("pow"),
                    .summary = "the name of the map: maximum, minimum or pow",
                    .required = true},
                   {.name = "operand",
                    .default_value = 0,
                    .summary = "0: with respect to a, 1: to b"}},
    .infer = infer,
    .flops = [](const OpCall& call) { return Size(2) * call.input(0).num_elements(); },
    .reference = reference,
    .is_differentiable = false,
    .examples = {"binary_map_gradient(f32[T,4], f32[T,4], f32[4]) {function=\"pow\"}",
                 "binary_map_gradient(f32[2,3], f32[2,3], f32[2,3]) {function=\"maximum\", "
                 "operand=1}"},
}};

}  // namespace
}  // namespace lathe::ops::binary_map_gradient
