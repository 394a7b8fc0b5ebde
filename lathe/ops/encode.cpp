#include <cmath>
#include <limits>

#include "lathe/core/op.h"
#include "lathe/numerics/row_codes.h"
#include "lathe/numerics/scaled_format.h"
#include "lathe/ops/operand_checks.h"
#include "lathe/ops/quantized_operands.h"

// encode(x, scale?, zero?) {format}: what `quantize` rounds to, as the whole numbers it is made of
// (numerics/row_codes.h): x's numbers as bytes, and for each row, or each block of it, its scale
// and zero point. A block that holds a NaN has NaN for its scale, so that whatever is multiplied
// with it becomes NaN, as it would with the rounded numbers.
namespace lathe::ops::encode {
namespace {

constexpr int kNumbers = 0, kScales = 1, kZeros = 2;

std::vector<Type> infer(const OpCall& call) {
  const Type& x = call.input(0);
  check_quantized_operands("encode", call, x, 1);
  const std::shared_ptr<const NumberFormat> format = format_of(call.attributes());
  const FormatFacts& facts = format->facts();
  if (numerics::find_scaled_spec(*format) == nullptr || !numerics::has_row_codes(*format))
    fail("encode: {} has no whole numbers of 8 bits", facts.text);
  if (call.attributes().integer("axis") >= 0) fail("encode: rows are along the last axis");
  if (!facts.is_row_local)
    fail("encode: {} has a scale for several rows, and each must come out as if it were alone",
         facts.text);
  Type scales{DType::F32, x.shape};
  scales.shape.back() =
      Size(numerics::blocks_of_row(facts, constant_size("encode", x.axis(-1), x)));
  return {{DType::I8, x.shape}, scales, {DType::I32, scales.shape}};
}

void reference(const KernelCall& call) {
  const QuantizedMatrix matrix = quantized_matrix(call, call.input(0), 1);
  const numerics::RowCodes codes = numerics::read_codes(
      *matrix.format, matrix.format->encode(matrix.args), matrix.args.scales, matrix.args.zeros);
  std::copy(codes.numbers.begin(), codes.numbers.end(),
            call.outputs[kNumbers].mutable_data<std::int8_t>().begin());
  std::copy(codes.zeros.begin(), codes.zeros.end(),
            call.outputs[kZeros].mutable_data<std::int32_t>().begin());
  const std::span<float> scales = call.outputs[kScales].mutable_data<float>();
  std::copy(codes.scales.begin(), codes.scales.end(), scales.begin());
  const std::int64_t width =
      codes.blocks > 1 ? matrix.format->facts().block_columns : codes.columns;
  for (std::int64_t i = 0; i < codes.rows * codes.columns; ++i)
    if (std::isnan(matrix.args.x[i]))
      scales[static_cast<std::size_t>(i / codes.columns * codes.blocks +
                                      i % codes.columns / width)] =
          std::numeric_limits<float>::quiet_NaN();
}

const Register registration{Op{
    .name = "encode",
    .summary = "the whole numbers that a format rounds to, their scales and zero points",
    .operands = {{.name = "x"},
                 {.name = "scale", .optional = true, .role = OperandRole::Scale},
                 {.name = "zero", .optional = true, .role = OperandRole::Zero}},
    .attributes = {{.name = "format",
                    .default_value = std::string(),
                    .summary = "a number format of at most 8 bits, such as \"int:8,dynamic\"",
                    .required = true},
                   axis_attribute()},
    .num_results = 3,
    .infer = infer,
    .flops = [](const OpCall& call) { return Size(4) * call.input(0).num_elements(); },
    .reference = reference,
    .is_differentiable = false,
    .is_per_token = true,
    .examples = {"encode(f32[T,40]) {format=\"int:8,dynamic\"}",
                 "encode(f32[B,L,36], f32[]) {format=\"int:8\"}",
                 "encode(f32[T,24], f32[], f32[]) {format=\"int:8,asymmetric\"}",
                 "encode(f32[T,24]) {format=\"int:8,asymmetric,dynamic\"}",
                 "encode(f32[T,72]) {format=\"mxint:8\"}",
                 "encode(f32[T,72]) {format=\"int:4,group=32,dynamic\"}",
                 "encode(f32[T,20]) {format=\"fixed:8,6\"}",
                 "encode(f32[T,20], f32[]) {format=\"fixed:8,auto\"}"},
}};

}  // namespace
}  // namespace lathe::ops::encode
