#include <cmath>

#include "lathe/io/onnx/onnx_op.h"

// Products of matrices. One with a constant matrix is a layer: `linear` with its rows.
namespace lathe::io::onnx::products {
namespace {

bool is_layer_weight(OnnxCall& call, std::size_t index) {
  return call.constant(index) != nullptr && call.type(index).rank() == 2 &&
         is_floating(call.type(index).dtype);
}

void map_matmul(OnnxCall& call) {
  const Type a = call.type(0);
  const Type b = call.type(1);
  if (a.rank() == 0 || b.rank() == 0) call.refuse("{} by {}", to_text(a), to_text(b));
  if (is_floating(a.dtype) && is_layer_weight(call, 1)) {
    call.give(call.add("linear", {call.value(0), call.weight(1)}));
    return;
  }
  // A vector is a row on the left and a column on the right, which go again.
  Value left = call.value(0);
  Value right = call.value(1);
  if (a.rank() == 1) left = call.reshape(left, {Size(1), a.shape[0]}, "row");
  if (b.rank() == 1) right = call.reshape(right, {b.shape[0], Size(1)}, "column");
  Value y = call.add("matmul", {left, right});
  Shape shape = call.type_of(y).shape;
  if (b.rank() == 1) shape.pop_back();
  if (a.rank() == 1) shape.erase(shape.end() - (b.rank() == 1 ? 1 : 2));
  call.give(call.reshape(y, shape, "flat"));
}

Value scaled(OnnxCall& call, Value x, double factor) {
  if (factor == 1.0) return x;
  return call.add("mul", {x, call.number(factor, call.type_of(x).dtype)}, {}, {}, "scaled");
}

// alpha * A * B + beta * C, each of A and B transposed or not.
void map_gemm(OnnxCall& call) {
  const double alpha = call.real("alpha", 1.0), beta = call.real("beta", 1.0);
  const bool flip_a = call.integer("transA", 0) != 0, flip_b = call.integer("transB", 0) != 0;
  const Type a = call.type(0), b = call.type(1);
  if (a.rank() != 2 || b.rank() != 2) call.refuse("{} by {}", to_text(a), to_text(b));
  const bool has_bias = call.has(2);
  if (is_layer_weight(call, 1) && alpha == 1.0) {
    Value x = call.value(0);
    if (flip_a) x = call.transpose(x, {1, 0}, "flipped");
    const Value weight = flip_b ? call.value(1) : call.weight(1);
    const Size& width = call.type_of(weight).shape[0];
    const bool is_vector = has_bias && beta == 1.0 && call.type(2).shape == Shape{width};
    Value y = is_vector ? call.add("linear", {x, weight, call.value(2)})
                        : call.add("linear", {x, weight});
    if (has_bias && !is_vector)
      y = call.add("add", {y, scaled(call, call.value(2), beta)}, {}, {}, "bias");
    call.give(y);
    return;
  }
  Value y = call.add("matmul", {call.value(0), call.value(1)},
                     {{"transpose_a", flip_a}, {"transpose_b", flip_b}});
  y = scaled(call, y, alpha);
  if (has_bias) y = call.add("add", {y, scaled(call, call.value(2), beta)}, {}, {}, "bias");
  call.give(y);
}

// Scores of queries and keys, masked, made weights, and applied to values. Written out; the pass
// recognize-attention finds it again with everything around it.
void map_attention(OnnxCall& call) {
  if (call.has(4) || call.has(5) || call.wants(1) || call.wants(2))
    call.refuse("keys and values of earlier tokens are not supported");
  if (call.wants(3)) call.refuse("scores as an output are not supported");
  if (call.real("softcap", 0.0) != 0.0) call.refuse("capped scores are not supported");
  if (call.integer("left_window_size", -1) >= 0 || call.integer("right_window_size", -1) >= 0)
    call.refuse("windows of keys are not supported");
  if (call.has(6)) call.refuse("lengths of keys without padding are not supported");
  const auto heads_first = [&](std::size_t index, const char* attribute, const char* role) {
    const Type x = call.type(index);
    if (x.rank() == 4) return call.value(index);
    const Size heads(call.integer(attribute, 0));
    const std::optional<Size> size =
        x.rank() == 3 && heads != Size(0) ? exact_quotient(x.shape[2], heads) : std::nullopt;
    if (!size) call.refuse("{} does not divide into {} heads", to_text(x), heads.text());
    const Value spread =
        call.reshape(call.value(index), {x.shape[0], x.shape[1], heads, *size}, role);
    return call.transpose(spread, {0, 2, 1, 3}, role);
  };
  const bool is_flat = call.type(0).rank() == 3;
  const Value q = heads_first(0, "q_num_heads", "query");
  Value k = heads_first(1, "kv_num_heads", "key");
  Value v = heads_first(2, "kv_num_heads", "value");
  const Type query = call.type_of(q);
  // Several queries may share keys and values.
  const auto repeated = [&](Value x, const char* role) {
    const Shape shape = call.type_of(x).shape;
    if (shape[1] == query.shape[1]) return x;
    const std::optional<Size> times = exact_quotient(query.shape[1], shape[1]);
    if (!times) call.refuse("{} query heads and {} others", query.shape[1].text(), shape[1].text());
    const Value spread = call.reshape(x, {shape[0], shape[1], Size(1), shape[2], shape[3]}, role);
    const Value broadcast =
        call.broadcast(spread, {shape[0], shape[1], *times, shape[2], shape[3]});
    return call.reshape(broadcast, {shape[0], query.shape[1], shape[2], shape[3]}, role);
  };
  k = repeated(k, "key_shared");
  v = repeated(v, "value_shared");
  double scale = call.real("scale", 0.0);
  if (!call.has_attribute("scale")) {
    if (!query.shape[3].is_constant()) call.refuse("heads of {}", query.shape[3].text());
    scale = 1.0 / std::sqrt(static_cast<double>(query.shape[3].constant()));
  }
  Value scores = call.add("matmul", {q, k}, {{"transpose_b", true}}, {}, "scores");
  scores = call.add("mul", {scores, call.number(scale, query.dtype)}, {}, {}, "scaled");
  constexpr double kHidden = -3.4028234663852886e38;
  const auto hide = [&](Value is_kept, const char* role) {
    const Value bias =
        call.add("where", {is_kept, call.number(0, query.dtype), call.number(kHidden, query.dtype)},
                 {}, {}, role);
    scores = call.add("add", {scores, bias}, {}, {}, role);
  };
  if (call.integer("is_causal", 0) != 0) {
    const Type type = call.type_of(scores);
    const auto range = [&](std::size_t axis) {
      const Value numbers =
          call.add("range", {}, {}, {{.dtype = DType::I64, .shape = {type.shape[axis]}}}, "range");
      Shape shape(4, Size(1));
      shape[axis] = type.shape[axis];
      return call.reshape(numbers, shape, "along");
    };
    hide(call.add("less_equal", {range(3), range(2)}, {}, {}, "not_later"), "causal");
  }
  if (call.has(3)) {
    if (call.type(3).dtype == DType::Bool)
      hide(call.value(3), "mask");
    else
      scores = call.add("add", {scores, call.value(3)}, {}, {}, "mask");
  }
  const Value weights = call.add("softmax", {scores}, {}, {}, "weights");
  Value y = call.add("matmul", {weights, v});
  if (is_flat) {
    const Shape shape = call.type_of(y).shape;
    y = call.reshape(call.transpose(y, {0, 2, 1, 3}, "joined"),
                     {shape[0], shape[2], shape[1] * shape[3]}, "flat");
  }
  call.give(y);
}

const std::vector<Register> registrations = [] {
  std::vector<Register> result;
  const OnnxOp ops[] = {
      {.name = "Attention", .map = map_attention},
      {.name = "Gemm", .map = map_gemm},
      {.name = "MatMul", .map = map_matmul},
  };
  for (const OnnxOp& op : ops) result.emplace_back(op);
  return result;
}();

}  // namespace
}  // namespace lathe::io::onnx::products
