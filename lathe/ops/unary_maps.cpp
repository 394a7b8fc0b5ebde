#include <cmath>
#include <numbers>

#include "lathe/core/op.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/operand_checks.h"

// Ops that map each element alone: y[i] = f(x[i]).
namespace lathe::ops {
namespace {

using Function = double (*)(double, const AttributeReader&);

double sigmoid(double x) {
  return 1.0 / (1.0 + std::exp(-x));
}

double gelu(double x, const AttributeReader& attributes) {
  if (attributes.text("approximate") == "none")
    return 0.5 * x * (1.0 + std::erf(x / std::numbers::sqrt2));
  const double scale = std::sqrt(2.0 / std::numbers::pi);
  return 0.5 * x * (1.0 + std::tanh(scale * (x + 0.044715 * x * x * x)));
}

void check_gelu(const AttributeReader& attributes) {
  const std::string& approximate = attributes.text("approximate");
  if (approximate != "none" && approximate != "tanh")
    throw unknown_name("approximation", approximate, {"none", "tanh"});
}

struct UnaryMap {
  std::string name;
  std::string summary;
  Function function;
  bool takes_integers = false;
  std::vector<AttributeSpec> attributes = {};
  std::string example_attributes = {};
  void (*check_attributes)(const AttributeReader&) = nullptr;
};

std::vector<UnaryMap> unary_maps() {
  return {
      {"abs", "the magnitude of x", [](double x, const auto&) { return std::fabs(x); }, true},
      {"cos", "the cosine of x in radians", [](double x, const auto&) { return std::cos(x); }},
      {"erf", "the error function of x", [](double x, const auto&) { return std::erf(x); }},
      {"exp", "e to the power x", [](double x, const auto&) { return std::exp(x); }},
      {"gelu",
       "x times the normal distribution function of x",
       gelu,
       false,
       {{"approximate", std::string("none"), "\"none\" by erf, or \"tanh\" by its approximation"}},
       " {approximate=\"tanh\"}",
       check_gelu},
      {"identity", "x itself", [](double x, const auto&) { return x; }, true},
      {"leaky_relu",
       "x where it is positive, slope * x elsewhere",
       [](double x, const auto& attributes) { return x > 0 ? x : attributes.real("slope") * x; },
       false,
       {{"slope", 0.01, "the slope below zero"}},
       " {slope=0.1}"},
      {"log", "the natural logarithm of x", [](double x, const auto&) { return std::log(x); }},
      {"neg", "minus x", [](double x, const auto&) { return -x; }, true},
      {"quick_gelu", "x * sigmoid(1.702 * x)",
       [](double x, const auto&) { return x * sigmoid(1.702 * x); }},
      {"reciprocal", "1 / x", [](double x, const auto&) { return 1.0 / x; }},
      // Written so that NaN passes through.
      {"relu", "x where it is positive, 0 elsewhere",
       [](double x, const auto&) { return x < 0 ? 0.0 : x; }, true},
      {"sigmoid", "1 / (1 + exp(-x))", [](double x, const auto&) { return sigmoid(x); }},
      {"silu", "x * sigmoid(x)", [](double x, const auto&) { return x * sigmoid(x); }},
      {"sin", "the sine of x in radians", [](double x, const auto&) { return std::sin(x); }},
      {"sqrt", "the square root of x", [](double x, const auto&) { return std::sqrt(x); }},
      {"tanh", "the hyperbolic tangent of x", [](double x, const auto&) { return std::tanh(x); }},
  };
}

Op unary_op(const UnaryMap& map) {
  return {
      .name = map.name,
      .summary = map.summary,
      .operands = {{.name = "x"}},
      .attributes = map.attributes,
      .infer = [map](const OpCall& call) -> std::vector<Type> {
        if (!map.takes_integers) require_floating(map.name, call, 0);
        if (map.check_attributes != nullptr) map.check_attributes(call.attributes());
        return {{.dtype = call.input(0).dtype, .shape = call.input(0).shape}};
      },
      // One an element, whatever the function: maps cost memory traffic, not arithmetic.
      .flops = [](const OpCall& call) { return call.input(0).num_elements(); },
      .reference =
          [function = map.function](const KernelCall& call) {
            std::vector<double> values = read_elements(call.input(0));
            for (double& value : values) value = function(value, call.attributes);
            write_elements(call.outputs[0], values);
          },
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
}  // namespace lathe::ops
