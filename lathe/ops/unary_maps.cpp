#include "lathe/ops/unary_maps.h"

#include <cmath>
#include <numbers>

#include "lathe/core/op.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/gradient_nodes.h"
#include "lathe/ops/operand_checks.h"

// Ops that map each element alone: y[i] = f(x[i]).
namespace lathe::ops {
namespace {

double sigmoid(double x) {
  return 1.0 / (1.0 + std::exp(-x));
}
// Of x * sigmoid(rate * x).
double swish_derivative(double x, double rate) {
  const double s = sigmoid(rate * x);
  return s + rate * x * s * (1.0 - s);
}

constexpr double kCubic = 0.044715;  // of the approximation of gelu

double gelu(double x, const AttributeReader& attributes) {
  if (attributes.text("approximate") == "none")
    return 0.5 * x * (1.0 + std::erf(x / std::numbers::sqrt2));
  const double scale = std::sqrt(2.0 / std::numbers::pi);
  return 0.5 * x * (1.0 + std::tanh(scale * (x + kCubic * x * x * x)));
}

double gelu_derivative(double x, const AttributeReader& attributes) {
  if (attributes.text("approximate") == "none") {
    const double density = std::exp(-0.5 * x * x) / std::sqrt(2.0 * std::numbers::pi);
    return 0.5 * (1.0 + std::erf(x / std::numbers::sqrt2)) + x * density;
  }
  const double scale = std::sqrt(2.0 / std::numbers::pi);
  const double t = std::tanh(scale * (x + kCubic * x * x * x));
  return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * scale * (1.0 + 3.0 * kCubic * x * x);
}

// Of maps that leave whole numbers as they are.
Whole itself(Whole x) {
  return x;
}
// The least number has no opposite, and wraps around to itself.
Whole minus(Whole x) {
  return Whole{} - x;
}
Whole magnitude(Whole x) {
  return x < Whole{} ? minus(x) : x;
}

// Of maps that are constant between their steps.
double flat(double, const AttributeReader&) {
  return 0.0;
}

void check_gelu(const AttributeReader& attributes) {
  const std::string& approximate = attributes.text("approximate");
  if (approximate != "none" && approximate != "tanh")
    throw unknown_name("approximation", approximate, {"none", "tanh"});
}

// At a kink the derivative is that of the left side, but 0 for abs, as in other frameworks.
std::vector<UnaryMap> make_unary_maps() {
  return {
      {"abs", "the magnitude of x", [](double x, const auto&) { return std::fabs(x); },
       [](double x, const auto&) { return x > 0   ? 1.0
                                          : x < 0 ? -1.0
                                                  : x; }, magnitude},
      {"asinh", "the number whose hyperbolic sine is x",
       [](double x, const auto&) { return std::asinh(x); },
       [](double x, const auto&) { return 1.0 / std::sqrt(x * x + 1.0); }},
      {"atan", "the angle in radians whose tangent is x",
       [](double x, const auto&) { return std::atan(x); },
       [](double x, const auto&) { return 1.0 / (1.0 + x * x); }},
      {"ceil", "the least whole number that is not below x",
       [](double x, const auto&) { return std::ceil(x); }, flat, itself},
      {"cos", "the cosine of x in radians", [](double x, const auto&) { return std::cos(x); },
       [](double x, const auto&) { return -std::sin(x); }},
      {"cosh", "the hyperbolic cosine of x", [](double x, const auto&) { return std::cosh(x); },
       [](double x, const auto&) { return std::sinh(x); }},
      {"erf", "the error function of x", [](double x, const auto&) { return std::erf(x); },
       [](double x, const auto&) { return 2.0 * std::numbers::inv_sqrtpi * std::exp(-x * x); }},
      {"exp", "e to the power x", [](double x, const auto&) { return std::exp(x); },
       [](double x, const auto&) { return std::exp(x); }},
      {"floor", "the largest whole number that is not above x",
       [](double x, const auto&) { return std::floor(x); }, flat, itself},
      {"gelu",
       "x times the normal distribution function of x",
       gelu,
       gelu_derivative,
       nullptr,
       {{"approximate", std::string("none"), "\"none\" by erf, or \"tanh\" by its approximation"}},
       " {approximate=\"tanh\"}",
       check_gelu},
      {"identity",
       "x itself",
       [](double x, const auto&) { return x; },
       [](double, const auto&) { return 1.0; },
       itself,
       {},
       {},
       {},
       true},
      {"leaky_relu",
       "x where it is positive, slope * x elsewhere",
       [](double x, const auto& attributes) { return x > 0 ? x : attributes.real("slope") * x; },
       [](double x, const auto& attributes) { return x > 0 ? 1.0 : attributes.real("slope"); },
       nullptr,
       {{"slope", 0.01, "the slope below zero"}},
       " {slope=0.1}"},
      {"log", "the natural logarithm of x", [](double x, const auto&) { return std::log(x); },
       [](double x, const auto&) { return 1.0 / x; }},
      {"neg", "minus x", [](double x, const auto&) { return -x; },
       [](double, const auto&) { return -1.0; }, minus},
      {"quick_gelu", "x * sigmoid(1.702 * x)",
       [](double x, const auto&) { return x * sigmoid(1.702 * x); },
       [](double x, const auto&) { return swish_derivative(x, 1.702); }},
      {"reciprocal", "1 / x", [](double x, const auto&) { return 1.0 / x; },
       [](double x, const auto&) { return -1.0 / (x * x); }},
      // Written so that NaN passes through.
      {"relu", "x where it is positive, 0 elsewhere",
       [](double x, const auto&) { return x < 0 ? 0.0 : x; },
       [](double x, const auto&) { return x > 0 ? 1.0 : 0.0; },
       [](Whole x) { return x < Whole{} ? Whole{} : x; }},
      {"round", "the nearest whole number, ties to even",
       [](double x, const auto&) { return std::nearbyint(x); }, flat, itself},
      {"sigmoid", "1 / (1 + exp(-x))", [](double x, const auto&) { return sigmoid(x); },
       [](double x, const auto&) { return sigmoid(x) * (1.0 - sigmoid(x)); }},
      {"sign", "-1, 0 or 1 as x is below, at or above zero",
       [](double x, const auto&) { return x > 0   ? 1.0
                                          : x < 0 ? -1.0
                                                  : x; }, flat,
       [](Whole x) { return x > Whole{}   ? Whole{1}
                            : x < Whole{} ? Whole{-1}
                                          : x; }},
      {"silu", "x * sigmoid(x)", [](double x, const auto&) { return x * sigmoid(x); },
       [](double x, const auto&) { return swish_derivative(x, 1.0); }},
      {"sin", "the sine of x in radians", [](double x, const auto&) { return std::sin(x); },
       [](double x, const auto&) { return std::cos(x); }},
      {"sinh", "the hyperbolic sine of x", [](double x, const auto&) { return std::sinh(x); },
       [](double x, const auto&) { return std::cosh(x); }},
      // In the form that does not overflow.
      {"softplus", "log(1 + exp(x))",
       [](double x, const auto&) {
         return (x > 0 ? x : 0.0) + std::log1p(std::exp(-std::fabs(x)));
       },
       [](double x, const auto&) { return sigmoid(x); }},
      {"sqrt", "the square root of x", [](double x, const auto&) { return std::sqrt(x); },
       [](double x, const auto&) { return 0.5 / std::sqrt(x); }},
      {"tan", "the tangent of x in radians", [](double x, const auto&) { return std::tan(x); },
       [](double x, const auto&) { return 1.0 + std::tan(x) * std::tan(x); }},
      {"tanh", "the hyperbolic tangent of x", [](double x, const auto&) { return std::tanh(x); },
       [](double x, const auto&) { return 1.0 - std::tanh(x) * std::tanh(x); }},
  };
}

std::vector<Value> gradient(Graph& graph, NodeId node, std::span<const Value> gradients) {
  if (graph.is(node, "identity")) return {gradients[0]};
  if (graph.is(node, "neg")) return {derive(graph, node, "gradient_x", "neg", {gradients[0]})};
  Attributes attributes = graph.attributes(node);
  attributes["function"] = graph.op(node).name;
  return {derive(graph, node, "gradient_x", "map_gradient", {gradients[0], graph.input(node, 0)},
                 std::move(attributes))};
}

Op unary_op(const UnaryMap& map) {
  return {
      .name = map.name,
      .summary = map.summary,
      .operands = {{.name = "x"}},
      .attributes = map.attributes,
      .infer = [map](const OpCall& call) -> std::vector<Type> {
        if (map.of_integers == nullptr) require_floating(map.name, call, 0);
        if (map.check_attributes != nullptr) map.check_attributes(call.attributes());
        return {{.dtype = call.input(0).dtype, .shape = call.input(0).shape}};
      },
      // One an element, whatever the function: maps cost memory traffic, not arithmetic.
      .flops = [](const OpCall& call) { return call.input(0).num_elements(); },
      .reference =
          [map](const KernelCall& call) {
            if (!is_floating(call.outputs[0].dtype())) {
              std::vector<Whole> numbers = read_numbers<Whole>(call.input(0));
              for (Whole& number : numbers) number = map.of_integers(number);
              write_numbers(call.outputs[0], numbers);
              return;
            }
            std::vector<double> values = read_elements(call.input(0));
            for (double& value : values) value = map.function(value, call.attributes);
            write_elements(call.outputs[0], values);
          },
      .gradient = gradient,
      .is_elementwise = true,
      .is_alias = map.is_alias,
      .is_per_token = true,
      .examples = {map.name + "(f32[T,4])", map.name + "(f32[2,3])" + map.example_attributes},
  };
}

const std::vector<Register> registrations = [] {
  std::vector<Register> result;
  for (const UnaryMap& map : unary_maps()) result.emplace_back(unary_op(map));
  return result;
}();

}  // namespace

const std::vector<UnaryMap>& unary_maps() {
  static const std::vector<UnaryMap> maps = make_unary_maps();
  return maps;
}

}  // namespace lathe::ops
