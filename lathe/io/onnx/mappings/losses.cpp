#include "lathe/io/onnx/onnx_op.h"

// Losses of classes: [N,C,..] against labels [N,..], weighted, averaged, summed or as they are.
namespace lathe::io::onnx::losses {
namespace {

Value pair(OnnxCall& call, const char* op, Value a, Value b, const char* role) {
  return call.add(op, {a, b}, {}, {}, role);
}

Value sum_all(OnnxCall& call, Value x, const char* role) {
  if (call.type_of(x).rank() == 0) return x;
  return call.add("sum", {x}, {}, {}, role);
}

// Minus the logarithm of each label's probability.
Value negative_log_likelihood(OnnxCall& call, Value logarithms) {
  const Type type = call.type_of(logarithms);
  if (type.rank() < 2) call.refuse("{} has no classes", to_text(type));
  const Value labels = call.cast(call.value(1), DType::I64);
  // Labels to be ignored are read as 0 and weigh nothing.
  const bool ignores = call.has_attribute("ignore_index");
  const Value ignored =
      call.number(static_cast<double>(call.integer("ignore_index", 0)), DType::I64);
  Value is_ignored = kNone;
  Value safe = labels;
  if (ignores) {
    is_ignored = pair(call, "equal", labels, ignored, "is_ignored");
    safe = call.add("where", {is_ignored, call.number(0, DType::I64), labels}, {}, {}, "label");
  }
  Shape column = type.shape;
  column[1] = Size(1);
  const Value picked =
      call.add("gather_elements", {logarithms, call.reshape(safe, column, "column")},
               {{"axis", std::int64_t{1}}}, {}, "picked");
  Shape shape = type.shape;
  shape.erase(shape.begin() + 1);
  Value loss = call.add("neg", {call.reshape(picked, shape, "flat")}, {}, {}, "loss");
  // The weight of each label's class.
  Value weights = kNone;
  if (call.has(2))
    weights = call.add("gather", {call.value(2), safe}, {{"axis", std::int64_t{0}}}, {}, "weights");
  if (ignores) {
    const Value one = call.number(1, type.dtype), zero = call.number(0, type.dtype);
    weights =
        call.add("where", {is_ignored, zero, weights.is_none() ? one : weights}, {}, {}, "weights");
  }
  if (!weights.is_none()) loss = pair(call, "mul", loss, weights, "weighted");
  const std::string reduction = call.text("reduction", "mean");
  if (reduction == "none") return loss;
  const Value sum = sum_all(call, loss, "sum");
  if (reduction == "sum") return sum;
  if (reduction != "mean") call.refuse("reduction \"{}\"", reduction);
  if (weights.is_none()) return call.add("mean", {loss}, {}, {}, "mean");
  return pair(call, "div", sum, sum_all(call, weights, "weight"), "mean");
}

void map_negative_log_likelihood(OnnxCall& call) {
  call.give(negative_log_likelihood(call, call.value(0)));
}

void map_softmax_cross_entropy(OnnxCall& call) {
  const Value logarithms =
      call.add("log_softmax", {call.value(0)}, {{"axis", std::int64_t{1}}}, {}, "logarithms");
  call.give(negative_log_likelihood(call, logarithms));
  if (call.wants(1)) call.give(logarithms, 1);
}

const Register nll{OnnxOp{.name = "NegativeLogLikelihoodLoss", .map = map_negative_log_likelihood}};
const Register cross_entropy{
    OnnxOp{.name = "SoftmaxCrossEntropyLoss", .map = map_softmax_cross_entropy}};

}  // namespace
}  // namespace lathe::io::onnx::losses
