#include <cmath>
#include <numbers>

#include "lathe/io/onnx/onnx_op.h"

// Ops that map each element alone. Those with a twin of ours are one line of the table; the others
// are written in terms of them.
namespace lathe::io::onnx::elementwise {
namespace {

struct Twin {
  const char* onnx;
  const char* ours;
};
constexpr Twin kTwins[] = {
    {"Abs", "abs"},           {"Asinh", "asinh"},
    {"Atan", "atan"},         {"Ceil", "ceil"},
    {"Cos", "cos"},           {"Cosh", "cosh"},
    {"Erf", "erf"},           {"Exp", "exp"},
    {"Floor", "floor"},       {"IsNaN", "is_nan"},
    {"Log", "log"},           {"Neg", "neg"},
    {"Not", "logical_not"},   {"Reciprocal", "reciprocal"},
    {"Relu", "relu"},         {"Round", "round"},
    {"Sigmoid", "sigmoid"},   {"Sign", "sign"},
    {"Sin", "sin"},           {"Sinh", "sinh"},
    {"Softplus", "softplus"}, {"Sqrt", "sqrt"},
    {"Tan", "tan"},           {"Tanh", "tanh"},
};

const char* twin_of(const std::string& op) {
  for (const Twin& twin : kTwins)
    if (op == twin.onnx) return twin.ours;
  return nullptr;
}

void map_twin(OnnxCall& call) {
  call.give(call.add(twin_of(call.node().op), {call.value(0)}));
}

// A node of ours between two others of the same map.
Value step(OnnxCall& call, const char* op, std::vector<Value> inputs, const char* role = "part") {
  return call.add(op, std::move(inputs), {}, {}, role);
}

Value like(OnnxCall& call, double number) {
  return call.number(number, call.type_of(call.value(0)).dtype);
}

// asin(x) = atan(x / sqrt(1 - x^2)), which is +-pi/2 at the ends.
Value arc_sine(OnnxCall& call) {
  const Value x = call.value(0);
  const Value rest = step(call, "sub", {like(call, 1), step(call, "mul", {x, x})});
  return step(call, "atan", {step(call, "div", {x, step(call, "sqrt", {rest})})});
}

void map_asin(OnnxCall& call) {
  call.give(arc_sine(call));
}
void map_acos(OnnxCall& call) {
  call.give(step(call, "sub", {like(call, std::numbers::pi / 2), arc_sine(call)}));
}

// log(x + sqrt(x^2 - 1)), the root in two factors so that no square overflows.
void map_acosh(OnnxCall& call) {
  const Value x = call.value(0);
  const Value one = like(call, 1);
  const Value root = step(call, "mul",
                          {step(call, "sqrt", {step(call, "sub", {x, one})}),
                           step(call, "sqrt", {step(call, "add", {x, one})})});
  call.give(step(call, "log", {step(call, "add", {x, root})}));
}

void map_atanh(OnnxCall& call) {
  const Value x = call.value(0);
  const Value one = like(call, 1);
  const Value ratio = step(call, "div", {step(call, "add", {one, x}), step(call, "sub", {one, x})});
  call.give(step(call, "mul", {like(call, 0.5), step(call, "log", {ratio})}));
}

// max(x, 0) + scale * (exp(min(x, 0) / rate) - 1).
Value exponential_unit(OnnxCall& call, double scale, double rate) {
  const Value x = call.value(0);
  const Value zero = like(call, 0);
  Value low = step(call, "minimum", {x, zero});
  if (rate != 1.0) low = step(call, "div", {low, like(call, rate)});
  low = step(call, "sub", {step(call, "exp", {low}), like(call, 1)});
  if (scale != 1.0) low = step(call, "mul", {low, like(call, scale)});
  return step(call, "add", {step(call, "maximum", {x, zero}), low});
}

void map_elu(OnnxCall& call) {
  call.give(exponential_unit(call, call.real("alpha", 1.0), 1.0));
}
void map_celu(OnnxCall& call) {
  const double alpha = call.real("alpha", 1.0);
  call.give(exponential_unit(call, alpha, alpha));
}
void map_selu(OnnxCall& call) {
  const double alpha = call.real("alpha", 1.67326319217681884765625);
  const double gamma = call.real("gamma", 1.05070102214813232421875);
  call.give(step(call, "mul", {exponential_unit(call, alpha, 1.0), like(call, gamma)}));
}

void map_leaky_relu(OnnxCall& call) {
  call.give(call.add("leaky_relu", {call.value(0)}, {{"slope", call.real("alpha", 0.01)}}));
}

// The slopes are broadcast to x from its last axes.
void map_prelu(OnnxCall& call) {
  const Value x = call.value(0);
  const Value zero = like(call, 0);
  const Value low = step(call, "mul", {step(call, "minimum", {x, zero}), call.value(1)});
  call.give(step(call, "add", {step(call, "maximum", {x, zero}), low}));
}

void map_thresholded_relu(OnnxCall& call) {
  const Value x = call.value(0);
  const Value is_above = step(call, "greater", {x, like(call, call.real("alpha", 1.0))});
  call.give(step(call, "where", {is_above, x, like(call, 0)}));
}

Value clip(OnnxCall& call, Value x, double low, double high) {
  x = step(call, "maximum", {x, like(call, low)});
  return step(call, "minimum", {x, like(call, high)});
}

Value hard_sigmoid(OnnxCall& call, double alpha, double beta) {
  const Value line =
      step(call, "add", {step(call, "mul", {call.value(0), like(call, alpha)}), like(call, beta)});
  return clip(call, line, 0, 1);
}

void map_hard_sigmoid(OnnxCall& call) {
  call.give(hard_sigmoid(call, call.real("alpha", 0.2), call.real("beta", 0.5)));
}
void map_hard_swish(OnnxCall& call) {
  call.give(step(call, "mul", {call.value(0), hard_sigmoid(call, 1.0 / 6.0, 0.5)}));
}

void map_softsign(OnnxCall& call) {
  const Value x = call.value(0);
  const Value size = step(call, "add", {step(call, "abs", {x}), like(call, 1)});
  call.give(step(call, "div", {x, size}));
}

void map_mish(OnnxCall& call) {
  const Value x = call.value(0);
  call.give(step(call, "mul", {x, step(call, "tanh", {step(call, "softplus", {x})})}));
}

void map_gelu(OnnxCall& call) {
  const std::string approximate = call.text("approximate", "none");
  call.give(call.add("gelu", {call.value(0)}, {{"approximate", approximate}}));
}

void map_swish(OnnxCall& call) {
  const Value x = call.value(0);
  const double alpha = call.real("alpha", 1.0);
  if (alpha == 1.0) {
    call.give(call.add("silu", {x}));
    return;
  }
  call.give(
      step(call, "mul", {x, step(call, "sigmoid", {step(call, "mul", {x, like(call, alpha)})})}));
}

void map_shrink(OnnxCall& call) {
  const double bias = call.real("bias", 0.0);
  const double lambda = call.real("lambd", 0.5);
  const Value x = call.value(0);
  const Value above = step(call, "greater", {x, like(call, lambda)});
  const Value below = step(call, "less", {x, like(call, -lambda)});
  const Value inner =
      step(call, "where", {below, step(call, "add", {x, like(call, bias)}), like(call, 0)});
  call.give(step(call, "where", {above, step(call, "sub", {x, like(call, bias)}), inner}));
}

// Bounds were attributes before opset 11.
void map_clip(OnnxCall& call) {
  Value x = call.value(0);
  const auto bound = [&](const char* attribute, std::size_t operand, const char* op) {
    if (call.opset() < 11 && call.has_attribute(attribute))
      x = step(call, op, {x, like(call, call.real(attribute, 0.0))});
    else if (call.opset() >= 11 && call.has(operand))
      x = step(call, op, {x, call.value(operand)});
  };
  bound("min", 1, "maximum");
  bound("max", 2, "minimum");
  call.give(x);
}

void map_is_inf(OnnxCall& call) {
  const Value x = call.value(0);
  const bool positive = call.integer("detect_positive", 1) != 0;
  const bool negative = call.integer("detect_negative", 1) != 0;
  Value result = call.add("is_infinite", {x});
  if (!positive || !negative) {
    const char* op = positive ? "greater" : "less";
    if (!positive && !negative) {
      result = step(call, "logical_and", {result, step(call, "logical_not", {result})});
    } else {
      result = step(call, "logical_and", {result, step(call, op, {x, like(call, 0)})});
    }
  }
  call.give(result);
}

void map_identity(OnnxCall& call) {
  call.give(Known(call.known(0)), 0);
}

// In inference, which is what files hold, nothing is dropped; the mask says so.
void map_dropout(OnnxCall& call) {
  if (call.opset() >= 12 && call.has(2)) {
    const double ratio = call.has(1) ? call.need_number(1, "the ratio") : 0.5;
    if (call.need_number(2, "training_mode") != 0 && ratio != 0)
      call.refuse("drops in training, by numbers drawn at random");
  }
  call.give(Known(call.known(0)), 0);
  if (call.wants(1)) {
    Type type = call.type(0);
    if (call.opset() >= 10) type.dtype = DType::Bool;  // before, the mask multiplies
    call.give(call.add("constant", {}, {{"values", std::vector<double>{1.0}}}, {type}, "mask"), 1);
  }
}

const std::vector<Register> registrations = [] {
  std::vector<Register> result;
  for (const Twin& twin : kTwins) result.emplace_back(OnnxOp{.name = twin.onnx, .map = map_twin});
  const std::pair<const char*, void (*)(OnnxCall&)> others[] = {
      {"Acos", map_acos},
      {"Acosh", map_acosh},
      {"Asin", map_asin},
      {"Atanh", map_atanh},
      {"Celu", map_celu},
      {"Clip", map_clip},
      {"Dropout", map_dropout},
      {"Elu", map_elu},
      {"Gelu", map_gelu},
      {"HardSigmoid", map_hard_sigmoid},
      {"HardSwish", map_hard_swish},
      {"Identity", map_identity},
      {"IsInf", map_is_inf},
      {"LeakyRelu", map_leaky_relu},
      {"Mish", map_mish},
      {"PRelu", map_prelu},
      {"Selu", map_selu},
      {"Shrink", map_shrink},
      {"Softsign", map_softsign},
      {"Swish", map_swish},
      {"ThresholdedRelu", map_thresholded_relu},
  };
  for (const auto& [name, map] : others) result.emplace_back(OnnxOp{.name = name, .map = map});
  return result;
}();

}  // namespace
}  // namespace lathe::io::onnx::elementwise
