#include <cmath>
#include <numbers>

#include "lathe/io/onnx/onnx_writer.h"

// Maps, pairs, comparisons and choices: those with a twin are a line of a table.
namespace lathe::io::onnx::exports_elementwise {
namespace {

struct Twin {
  const char* ours;
  const char* onnx;
};
constexpr Twin kTwins[] = {
    {"abs", "Abs"},
    {"add", "Add"},
    {"asinh", "Asinh"},
    {"atan", "Atan"},
    {"ceil", "Ceil"},
    {"cos", "Cos"},
    {"cosh", "Cosh"},
    {"div", "Div"},
    {"equal", "Equal"},
    {"erf", "Erf"},
    {"exp", "Exp"},
    {"floor", "Floor"},
    {"greater", "Greater"},
    {"greater_equal", "GreaterOrEqual"},
    {"identity", "Identity"},
    {"is_infinite", "IsInf"},
    {"is_nan", "IsNaN"},
    {"less", "Less"},
    {"less_equal", "LessOrEqual"},
    {"log", "Log"},
    {"logical_and", "And"},
    {"logical_not", "Not"},
    {"logical_or", "Or"},
    {"logical_xor", "Xor"},
    {"maximum", "Max"},
    {"minimum", "Min"},
    {"mul", "Mul"},
    {"neg", "Neg"},
    {"pow", "Pow"},
    {"reciprocal", "Reciprocal"},
    {"relu", "Relu"},
    {"round", "Round"},
    {"sigmoid", "Sigmoid"},
    {"sign", "Sign"},
    {"sin", "Sin"},
    {"sinh", "Sinh"},
    {"softplus", "Softplus"},
    {"sqrt", "Sqrt"},
    {"sub", "Sub"},
    {"tan", "Tan"},
    {"tanh", "Tanh"},
    {"where", "Where"},
};

void write_twin(ExportCall& call) {
  for (const Twin& twin : kTwins)
    if (call.graph().op(call.node()).name == twin.ours) call.give_node(twin.onnx, call.inputs());
}

// Opset 17 has no op for these.
void write_gelu(ExportCall& call) {
  const std::string x = call.input(0);
  const std::string half = call.add("Mul", {x, call.number(0.5)});
  std::string inner;
  if (call.attributes().text("approximate") == "none") {
    inner = call.add("Erf", {call.add("Div", {x, call.number(std::numbers::sqrt2)})});
  } else {
    const std::string cube = call.add("Mul", {call.add("Mul", {x, x}), x});
    const std::string sum = call.add("Add", {x, call.add("Mul", {cube, call.number(0.044715)})});
    inner =
        call.add("Tanh", {call.add("Mul", {sum, call.number(std::sqrt(2.0 / std::numbers::pi))})});
  }
  call.give_node("Mul", {half, call.add("Add", {inner, call.number(1.0)})});
}

void write_silu(ExportCall& call) {
  const std::string x = call.input(0);
  call.give_node("Mul", {x, call.add("Sigmoid", {x})});
}

void write_quick_gelu(ExportCall& call) {
  const std::string x = call.input(0);
  call.give_node("Mul", {x, call.add("Sigmoid", {call.add("Mul", {x, call.number(1.702)})})});
}

void write_leaky_relu(ExportCall& call) {
  call.give_node("LeakyRelu", {call.input(0)}, {{"alpha", call.attributes().real("slope")}});
}

void write_mod(ExportCall& call) {
  const bool is_real = is_floating(call.type(0).dtype);
  const bool is_fmod = call.graph().is(call.node(), "fmod");
  if (is_real && !is_fmod)
    fail("a remainder of floats with the sign of the divisor is not written in ONNX");
  call.give_node("Mod", call.inputs(), {{"fmod", std::int64_t{is_fmod ? 1 : 0}}});
}

void write_cast(ExportCall& call) {
  call.give_node("Cast", {call.input(0)}, {{"to", onnx_code(call.result_type().dtype)}});
}

const std::vector<Register> registrations = [] {
  std::vector<Register> result;
  for (const Twin& twin : kTwins)
    result.emplace_back(OnnxWriter{.name = twin.ours, .write = write_twin});
  const OnnxWriter others[] = {
      {.name = "cast", .write = write_cast, .takes_wide = true},
      {.name = "fmod", .write = write_mod},
      {.name = "gelu", .write = write_gelu},
      {.name = "leaky_relu", .write = write_leaky_relu},
      {.name = "mod", .write = write_mod},
      {.name = "quick_gelu", .write = write_quick_gelu},
      {.name = "silu", .write = write_silu},
  };
  for (const OnnxWriter& writer : others) result.emplace_back(writer);
  return result;
}();

}  // namespace
}  // namespace lathe::io::onnx::exports_elementwise
