#include "lathe/io/onnx/onnx_op.h"

// Numbers of few bits: QuantizeLinear and DequantizeLinear of 8 bits, and products of them.
namespace lathe::io::onnx::quantization {
namespace {

// Scales of blocks along an axis, in the shape of x: each stands for `block` elements in a row, the
// last one for what is left.
Value spread_blocks(OnnxCall& call, Value parameter, const Type& x, std::int64_t block) {
  const Type type = call.type_of(parameter);
  if (type.rank() != x.rank() || x.rank() == 0)
    call.refuse("block_size {} and scales {} for {}: expected as many axes", block, to_text(type),
                to_text(x));
  const std::size_t axis = axis_at(call, call.integer("axis", 1), x.rank());
  for (std::size_t other = 0; other < x.rank(); ++other)
    if (other != axis && type.shape[other] != x.shape[other])
      call.refuse("scales {} of blocks along axis {} for {}: axis {} differs", to_text(type), axis,
                  to_text(x), other);
  const Size repeats = type.shape[axis] * Size(block), &length = x.shape[axis];
  const bool is_known = repeats.is_constant() && length.is_constant();
  if (is_known ? repeats.constant() < length.constant() ||
                     repeats.constant() - block >= length.constant()
               : repeats != length)
    call.refuse("{} scales of blocks of {} for {} elements", type.shape[axis].text(), block,
                length.text());
  Shape apart = type.shape, repeated = type.shape;
  apart.insert(apart.begin() + static_cast<std::ptrdiff_t>(axis) + 1, Size(1));
  repeated.insert(repeated.begin() + static_cast<std::ptrdiff_t>(axis) + 1, Size(block));
  const Value blocks = call.broadcast(call.reshape(parameter, apart, "apart"), repeated);
  Shape joined = type.shape;
  joined[axis] = repeats;
  const Value whole = call.reshape(blocks, joined, "blocks");
  if (repeats == length) return whole;
  return call.add("slice", {whole},
                  {{"axis", static_cast<std::int64_t>(axis)},
                   {"begin", std::int64_t{0}},
                   {"end", length.constant()}},
                  {}, "cut");
}

// A scale or zero point of one axis, or of blocks along it, in the shape of x.
Value spread(OnnxCall& call, Value parameter, const Type& x) {
  const std::int64_t block = call.integer("block_size", 0);
  if (block < 0) call.refuse("block_size {}: expected 0 or more", block);
  if (block > 0) return spread_blocks(call, parameter, x, block);
  const Type type = call.type_of(parameter);
  if (type.rank() == 0 || (type.rank() == 1 && type.shape[0] == Size(1) && x.rank() != 1))
    return call.reshape(parameter, {}, "number");
  const std::size_t axis =
      axis_at(call, call.integer("axis", 1), std::max<std::size_t>(x.rank(), 1));
  if (type.rank() != 1) call.refuse("scales {} for {}", to_text(type), to_text(x));
  Shape shape(x.rank(), Size(1));
  shape[axis] = type.shape[0];
  return call.reshape(parameter, shape, "along");
}

// What is computed has the type of the scales, which newer opsets let a file choose.
void expect_type_of_scales(OnnxCall& call, std::string_view attribute) {
  const std::int64_t code = call.integer(attribute, 0);
  if (code == 0) return;
  const std::optional<DType> asked = dtype_of_onnx(code);
  const DType scales = call.type(1).dtype;
  if (asked != scales)
    call.refuse("{} {}: expected that of the scales, {}", attribute,
                asked ? std::string(name(*asked)) : fmt::to_string(code), name(scales));
}

Value dequantized(OnnxCall& call, Value codes, std::size_t scale, std::size_t zero) {
  const Type type = call.type_of(codes);
  const DType dtype = call.type(scale).dtype;
  Value x = call.cast(codes, dtype);
  if (call.has(zero))
    x = call.add("sub", {x, call.cast(spread(call, call.value(zero), type), dtype)}, {}, {},
                 "centred");
  return call.add("mul", {x, spread(call, call.value(scale), type)});
}

Value quantized(OnnxCall& call, Value x, Value scale, Value zero, DType dtype) {
  const DType real = call.type_of(x).dtype;
  Value y = call.add("round", {call.add("div", {x, scale}, {}, {}, "scaled")}, {}, {}, "rounded");
  if (!zero.is_none()) y = call.add("add", {y, call.cast(zero, real)}, {}, {}, "shifted");
  const bool is_signed = dtype == DType::I8 || dtype == DType::I16;
  const double bits = dtype == DType::I16 ? 65536 : 256;
  const double low = is_signed ? -bits / 2 : 0, high = is_signed ? bits / 2 - 1 : bits - 1;
  y = call.add("maximum", {y, call.number(low, real)}, {}, {}, "low");
  return call.cast(call.add("minimum", {y, call.number(high, real)}, {}, {}, "high"), dtype);
}

void map_dequantize(OnnxCall& call) {
  expect_type_of_scales(call, "output_dtype");
  if (call.has(2) && call.type(2).dtype != call.type(0).dtype)
    call.refuse("codes are {} and zero points {}", name(call.type(0).dtype),
                name(call.type(2).dtype));
  call.give(dequantized(call, call.value(0), 1, 2));
}

void map_quantize(OnnxCall& call) {
  expect_type_of_scales(call, "precision");
  const Value x = call.value(0);
  const Type type = call.type_of(x);
  DType dtype = call.has(2) ? call.type(2).dtype : DType::U8;
  if (const std::int64_t code = call.integer("output_dtype", 0); code != 0) {
    const std::optional<DType> asked = dtype_of_onnx(code);
    if (!asked) call.refuse("element type {} is not supported", code);
    if (call.has(2) && *asked != dtype)
      call.refuse("codes are to be {}, and zero points are {}", name(*asked), name(dtype));
    dtype = *asked;
  }
  if (dtype != DType::U8 && dtype != DType::I8 && dtype != DType::I16)
    call.refuse("codes of {} are not supported", name(dtype));
  const Value zero = call.has(2) ? spread(call, call.value(2), type) : kNone;
  call.give(quantized(call, x, spread(call, call.value(1), type), zero, dtype));
}

// Products of codes without their zero points, exact in doubles.
Value integer_product(OnnxCall& call, std::size_t a, std::size_t a_zero, std::size_t b,
                      std::size_t b_zero) {
  const auto centred = [&](std::size_t operand, std::size_t zero, bool is_row) {
    Value x = call.cast(call.value(operand), DType::F64);
    if (!call.has(zero)) return x;
    Value offset = call.cast(call.value(zero), DType::F64);
    const Shape shape = call.type_of(offset).shape;
    // One zero point for each row of the left, or column of the right, matrix.
    if (is_row && shape.size() == 1 && shape[0] != Size(1))
      offset = call.reshape(offset, {shape[0], Size(1)}, "rows");
    return call.add("sub", {x, offset}, {}, {}, "centred");
  };
  return call.add("matmul", {centred(a, a_zero, true), centred(b, b_zero, false)}, {}, {},
                  "product");
}

void map_matmul_integer(OnnxCall& call) {
  call.give(call.cast(integer_product(call, 0, 2, 1, 3), DType::I32));
}

void map_qlinear_matmul(OnnxCall& call) {
  const Value product = integer_product(call, 0, 2, 3, 5);
  const auto number = [&](std::size_t index) { return call.cast(call.value(index), DType::F64); };
  const Value scale = call.add("mul", {number(1), number(4)}, {}, {}, "scale");
  const Value real = call.add("mul", {product, scale}, {}, {}, "real");
  call.give(quantized(call, real, number(6), call.value(7), call.type(7).dtype));
}

// To bytes, with a scale and a zero point that fit the values.
void map_dynamic_quantize(OnnxCall& call) {
  const Value x = call.value(0);
  const DType real = call.type_of(x).dtype;
  const auto extreme = [&](Value values) {
    if (call.type_of(values).rank() == 0) return values;
    return call.add("max", {values}, {}, {}, "largest");
  };
  const Value zero = call.number(0, real);
  const Value high = call.add("maximum", {extreme(x), zero}, {}, {}, "high");
  const Value lowest =
      call.add("neg", {extreme(call.add("neg", {x}, {}, {}, "minus"))}, {}, {}, "lowest");
  const Value low = call.add("minimum", {lowest, zero}, {}, {}, "low");
  const Value range = call.add("sub", {high, low}, {}, {}, "range");
  const Value scale = call.add("div", {range, call.number(255, real)}, {}, {}, "scale");
  const Value shift =
      call.add("neg", {call.add("div", {low, scale}, {}, {}, "below")}, {}, {}, "shift");
  Value point = call.add("round", {shift}, {}, {}, "point");
  point = call.add("minimum",
                   {call.add("maximum", {point, zero}, {}, {}, "least"), call.number(255, real)},
                   {}, {}, "most");
  const Value code = call.cast(point, DType::U8);
  call.give(quantized(call, x, scale, code, DType::U8), 0);
  call.give(scale, 1);
  call.give(code, 2);
}

const std::vector<Register> registrations = [] {
  std::vector<Register> result;
  const OnnxOp ops[] = {
      {.name = "DequantizeLinear", .map = map_dequantize},
      {.name = "DynamicQuantizeLinear", .map = map_dynamic_quantize},
      {.name = "MatMulInteger", .map = map_matmul_integer},
      {.name = "QLinearMatMul", .map = map_qlinear_matmul},
      {.name = "QuantizeLinear", .map = map_quantize},
  };
  for (const OnnxOp& op : ops) result.emplace_back(op);
  return result;
}();

}  // namespace
}  // namespace lathe::io::onnx::quantization
