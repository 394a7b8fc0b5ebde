#include "lathe/core/op.h"
#include "lathe/ops/channel_matrix.h"
#include "lathe/ops/operand_checks.h"
#include "lathe/ops/quantized_operands.h"

// decode(codes u8[..,bytes], local?, scale?, zero?) {format, columns, axis, shape, of, masked}: the
// numbers that codes stand for, [..,columns]. Rows of codes are little-endian bit streams; `local`
// holds the scales that a format makes itself, `scale` and `zero` those that were handed in. Where
// rows are the elements of an axis (channel_matrix.h), `shape` is that of the numbers.
namespace lathe::ops::decode {
namespace {

std::vector<Type> infer(const OpCall& call) {
  const Type& codes = call.input(0);
  const std::shared_ptr<const NumberFormat> format = format_of(call.attributes());
  const std::int64_t columns = call.attributes().integer("columns");
  if (columns < 1) fail("decode: columns={} must be positive", columns);
  require_rank_at_least("decode", "codes", codes, 1);
  const std::int64_t bytes = format->code_bytes(columns);
  if (codes.dtype != DType::U8 || codes.axis(-1) != Size(bytes))
    fail("decode: codes is {}, but rows of {} numbers of {} take u8[..,{}]", to_text(codes),
         columns, format->facts().text, bytes);
  Type result{DType::F32, codes.shape};
  result.shape.back() = Size(columns);
  const std::int64_t axis = call.attributes().integer("axis");
  const std::vector<std::int64_t>& shape = call.attributes().integers("shape");
  if ((axis >= 0) != !shape.empty()) fail("decode: axis and shape belong together");
  if (axis >= 0) {
    const Type rows = result;
    result.shape.assign(shape.begin(), shape.end());
    if (matrix_type("decode", result, axis).shape != rows.shape)
      fail("decode: shape {} by axis {} is no matrix {}", to_text(result), axis, to_text(rows));
  }
  const bool has_local = format->scale_bytes(columns) > 0;
  if (call.has(1) != has_local)
    fail("decode: {} {}", format->facts().text,
         has_local ? "needs its local scales" : "has no local scales");
  if (has_local) {
    const Type expected{DType::U8, local_scale_shape(*format, codes, columns)};
    if (call.input(1).dtype != expected.dtype || call.input(1).shape != expected.shape)
      fail("decode: local is {}, but codes {} of {} come with {}", to_text(call.input(1)),
           to_text(codes), format->facts().text, to_text(expected));
  }
  check_quantized_operands("decode", call, result, 2);
  return {result};
}

void reference(const KernelCall& call) {
  const std::shared_ptr<const NumberFormat> format = format_of(call.attributes);
  const auto bytes_of = [&](std::size_t operand) {
    if (!call.has(operand)) return std::vector<std::uint8_t>();
    const std::span<const std::uint8_t> bytes = call.input(operand).data<std::uint8_t>();
    return std::vector<std::uint8_t>(bytes.begin(), bytes.end());
  };
  EncodedMatrix encoded;
  encoded.columns = call.attributes.integer("columns");
  encoded.rows = call.outputs[0].num_elements() / encoded.columns;
  encoded.codes = bytes_of(0);
  encoded.scales = bytes_of(1);
  const auto floats_of = [&](std::size_t operand) {
    return call.has(operand) ? call.input(operand).data<float>().data() : nullptr;
  };
  Tensor numbers(DType::F32, {encoded.rows, encoded.columns});
  format->decode(encoded, floats_of(2), floats_of(3), numbers.mutable_data<float>().data());
  call.outputs[0] = from_matrix(numbers, call.outputs[0].dims(), call.attributes.integer("axis"));
}

const Register registration{Op{
    .name = "decode",
    .summary = "the numbers that packed codes stand for",
    .operands = {{.name = "codes", .role = OperandRole::Codes},
                 {.name = "local", .optional = true, .role = OperandRole::Scale},
                 {.name = "scale", .optional = true, .role = OperandRole::Scale},
                 {.name = "zero", .optional = true, .role = OperandRole::Zero}},
    .attributes = {{.name = "format",
                    .default_value = std::string(),
                    .summary = "the number format",
                    .required = true},
                   {.name = "columns",
                    .default_value = std::int64_t{0},
                    .summary = "numbers in a row",
                    .required = true},
                   axis_attribute(),
                   {.name = "shape",
                    .default_value = std::vector<std::int64_t>(),
                    .summary = "of the numbers; empty: the codes' rows of `columns`"},
                   {.name = "of",
                    .default_value = std::string(),
                    .summary = "the parameter whose codes they are"},
                   {.name = "masked",
                    .default_value = false,
                    .summary = "whether the parameter was masked before it was rounded"}},
    .infer = infer,
    .flops = [](const OpCall& call) { return Size(2) * call.input(0).num_elements(); },
    .reference = reference,
    .is_differentiable = false,
    .examples = {"decode(u8[4,9], none, f32[4]) {axis=0, columns=18, format=\"int:4,channel\", "
                 "shape=[4,2,3,3]}",
                 "decode(u8[4,3], none, f32[4]) {axis=1, columns=6, format=\"int:4,channel\", "
                 "shape=[6,4]}",
                 "decode(u8[3,4], none, f32[3]) {format=\"int:4,channel\", columns=8}",
                 "decode(u8[3,64], u8[3,2]) {format=\"mxint:8\", columns=64}",
                 "decode(u8[6,32], u8[2,2]) {format=\"bfp:8,block=4x16\", columns=32}"},
}};

}  // namespace
}  // namespace lathe::ops::decode
