#include "lathe/io/onnx/onnx_op.h"
#include "lathe/io/onnx/size_rules.h"

// Ops on pairs of elements, comparisons and choices, with broadcasting.
namespace lathe::io::onnx::arithmetic {
namespace {

struct Twin {
  const char* onnx;
  const char* ours;
};
constexpr Twin kTwins[] = {
    {"Add", "add"},         {"And", "logical_and"}, {"Equal", "equal"},
    {"Greater", "greater"}, {"Div", "div"},         {"GreaterOrEqual", "greater_equal"},
    {"Less", "less"},       {"Mul", "mul"},         {"LessOrEqual", "less_equal"},
    {"Or", "logical_or"},   {"Sub", "sub"},         {"Xor", "logical_xor"},
};

const char* twin_of(const std::string& op) {
  for (const Twin& twin : kTwins)
    if (op == twin.onnx) return twin.ours;
  return nullptr;
}

// Whether a constant is the same number everywhere.
bool is_all(const Tensor* tensor, double number) {
  if (tensor == nullptr || tensor->num_elements() == 0) return false;
  for (std::int64_t i = 0; i < tensor->num_elements(); ++i)
    if (tensor->at(i) != number) return false;
  return true;
}

// What leaves the other operand as it is: true for And, 0 for Add. A mask that is joined with one
// that hides nothing stays a mask of rows.
bool give_other(OnnxCall& call, std::size_t neutral, std::size_t other) {
  if (call.type(neutral).rank() > call.type(other).rank()) return false;
  for (const Size& size : call.type(neutral).shape)
    if (size != Size(1)) return false;
  call.give(Known(call.known(other)), 0);
  return true;
}

void map_twin(OnnxCall& call) {
  if (call.node().op == "And")
    for (const std::size_t i : {0, 1})
      if (is_all(call.constant(i), 1.0) && give_other(call, i, 1 - i)) return;
  Value a = call.value(0);
  Value b = call.value(1);
  call.give(call.add(twin_of(call.node().op), {a, b}));
}

// The exponent may have another type than the base, which the result has.
void map_pow(OnnxCall& call) {
  Value a = call.value(0);
  Value b = call.value(1);
  const DType dtype = call.type_of(a).dtype;
  if (is_floating(dtype)) {
    // Squares are common, and a product is what they are.
    if (const Tensor* exponent = call.constant(1);
        exponent != nullptr && exponent->num_elements() == 1 && exponent->at(0) == 2.0 &&
        exponent->rank() <= call.type_of(a).rank()) {
      call.give(call.add("mul", {a, a}));
      return;
    }
    call.give(call.add("pow", {a, call.cast(b, dtype)}));
    return;
  }
  if (!is_floating(call.type_of(b).dtype)) {
    call.give(call.add("pow", {a, call.cast(b, dtype)}));
    return;
  }
  call.give(call.cast(
      call.add("pow", {call.cast(a, DType::F64), call.cast(b, DType::F64)}, {}, {}, "power"),
      dtype));
}

void map_mod(OnnxCall& call) {
  if (call.integer("fmod", 0) == 0 && is_floating(call.type(0).dtype))
    call.refuse("{} without fmod, which ONNX has for whole numbers alone", to_text(call.type(0)));
  call.give(
      call.add(call.integer("fmod", 0) != 0 ? "fmod" : "mod", {call.value(0), call.value(1)}));
}

// Any number of operands.
Value fold_all(OnnxCall& call, const char* op) {
  Value result = call.value(0);
  for (std::size_t i = 1; i < call.num_inputs(); ++i)
    result = call.add(op, {result, call.value(i)});
  return result;
}

void map_max(OnnxCall& call) {
  call.give(fold_all(call, "maximum"));
}
void map_min(OnnxCall& call) {
  call.give(fold_all(call, "minimum"));
}
void map_sum(OnnxCall& call) {
  call.give(fold_all(call, "add"));
}
void map_mean(OnnxCall& call) {
  const Value sum = fold_all(call, "add");
  const Value count = call.number(static_cast<double>(call.num_inputs()), call.type_of(sum).dtype);
  call.give(call.add("div", {sum, count}));
}

void map_where(OnnxCall& call) {
  call.give(call.add("where", {call.value(0), call.value(1), call.value(2)}));
}

const std::vector<Register> registrations = [] {
  std::vector<Register> result;
  for (const Twin& twin : kTwins)
    result.emplace_back(OnnxOp{.name = twin.onnx, .map = map_twin, .fold = fold_arithmetic});
  const OnnxOp others[] = {
      {.name = "Max", .map = map_max, .fold = fold_arithmetic},
      {.name = "Mean", .map = map_mean},
      {.name = "Min", .map = map_min, .fold = fold_arithmetic},
      {.name = "Mod", .map = map_mod, .fold = fold_arithmetic},
      {.name = "Pow", .map = map_pow},
      {.name = "Sum", .map = map_sum},
      {.name = "Where", .map = map_where, .fold = fold_where},
  };
  for (const OnnxOp& op : others) result.emplace_back(op);
  return result;
}();

}  // namespace
}  // namespace lathe::io::onnx::arithmetic
