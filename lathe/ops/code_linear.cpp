#include "lathe/core/op.h"
#include "lathe/numerics/code_layout.h"
#include "lathe/ops/code_products.h"
#include "lathe/ops/operand_checks.h"
#include "lathe/ops/quantized_operands.h"

// code_linear(numbers i8[..,k], scales, zeros, codes u8[n,..], local?, scale?, zero?, bias?)
// {x_format, format, columns}: linear(x, w, bias) of an x that `encode` made whole numbers of and a
// w packed as for `decode`, by sums of products of whole numbers:
//
//   y[..,j] = (sum over blocks b of float(S[b]) * block factor) * row factor + bias[j]
//   S[b]    = sum over the columns i of b of (numbers[..,i] - zero of x) * (w's number[j,i] - zero)
//
// S is exact in 32 bits. Zeros of x are read where its numbers are unsigned as stored; the others
// have none. An operand's scales are in the block factor where it has one for each
// block, and in the row factor where it has one for the row; of two in one factor, the product is
// rounded first. Every operation on floats is rounded by itself, and blocks are added in order: so
// every executor gives the same bits.
namespace lathe::ops::code_linear {
namespace {

std::shared_ptr<const NumberFormat> format_named(const AttributeReader& attributes,
                                                 std::string_view name) {
  std::shared_ptr<const NumberFormat> format = parse_format(attributes.text(name));
  if (format == nullptr) fail("code_linear: {} \"float\" has no codes", name);
  return format;
}

std::vector<Type> infer(const OpCall& call) {
  const Type& x = call.input(kXNumbers);
  const Type& codes = call.input(kWeightCodes);
  const std::shared_ptr<const NumberFormat> x_format = format_named(call.attributes(), "x_format");
  const std::shared_ptr<const NumberFormat> format = format_named(call.attributes(), "format");
  const std::int64_t columns = call.attributes().integer("columns");
  require_rank_at_least("code_linear", "numbers", x, 1);
  require_rank("code_linear", "codes", codes, 2);
  if (x.dtype != DType::I8 || x.axis(-1) != Size(columns))
    fail("code_linear: numbers are {}, expected i8[..,{}]", to_text(x), columns);
  if (!can_multiply_codes(*x_format, *format, columns))
    fail("code_linear: cannot multiply {} by {} over {} columns", x_format->facts().text,
         format->facts().text, columns);
  if (codes.dtype != DType::U8 || codes.axis(1) != Size(format->code_bytes(columns)))
    fail("code_linear: codes are {}, but rows of {} numbers of {} take u8[..,{}]", to_text(codes),
         columns, format->facts().text, format->code_bytes(columns));
  Type scales{DType::F32, x.shape};
  scales.shape.back() = Size(numerics::blocks_of_row(x_format->facts(), columns));
  const auto expect = [&](CodeOperand operand, std::string_view name, const Type& type) {
    if (!call.has(operand) || call.input(operand).dtype != type.dtype ||
        call.input(operand).shape != type.shape)
      fail("code_linear: {} must be {}", name, to_text(type));
  };
  expect(kXScales, "scales", scales);
  expect(kXZeros, "zeros", {DType::I32, scales.shape});
  const FormatFacts& facts = format->facts();
  if (format->scale_bytes(columns) > 0)
    expect(kWeightLocal, "local", {DType::U8, local_scale_shape(*format, codes, columns)});
  const Type weight{DType::F32, {codes.axis(0), Size(columns)}};
  if (facts.scale_source == ScaleSource::Given) {
    expect(kWeightScale, "scale", {DType::F32, given_scale_shape(*format, weight)});
    if (facts.has_zero_point)
      expect(kWeightZero, "zero", {DType::F32, given_scale_shape(*format, weight)});
  }
  if (call.has(kCodeBias))
    require_vector("code_linear", "bias", call.input(kCodeBias), codes.axis(0));
  Type result{DType::F32, x.shape};
  result.shape.back() = codes.axis(0);
  return {result};
}

void reference(const KernelCall& call) {
  const std::int64_t k = call.attributes.integer("columns");
  const std::shared_ptr<const NumberFormat> x_format = format_named(call.attributes, "x_format");
  const std::shared_ptr<const NumberFormat> format = format_named(call.attributes, "format");
  const auto operand = [&](std::size_t i) { return call.has(i) ? &call.input(i) : nullptr; };
  const numerics::RowCodes weight =
      read_weight(*format, k, call.input(kWeightCodes), operand(kWeightLocal),
                  operand(kWeightScale), operand(kWeightZero));
  const CodeBlocks cut = *code_blocks(x_format->facts(), format->facts(), k);
  const std::span<const std::int8_t> x = call.input(kXNumbers).data<std::int8_t>();
  const std::span<const float> x_scales = call.input(kXScales).data<float>();
  const std::span<const std::int32_t> x_zeros = call.input(kXZeros).data<std::int32_t>();
  const bool has_zeros = numerics::code_layout(*x_format) == numerics::CodeLayout::Unsigned;
  const std::span<float> y = call.outputs[0].mutable_data<float>();
  const std::int64_t n = weight.rows, rows = static_cast<std::int64_t>(x.size()) / k;
  // The scale of a row's block, or of the row.
  const auto place = [&](bool has_blocks, std::int64_t row, std::int64_t block) {
    return static_cast<std::size_t>(has_blocks ? row * cut.blocks + block : row);
  };
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t j = 0; j < n; ++j) {
      float total = 0;
      for (std::int64_t b = 0; b < cut.blocks; ++b) {
        const std::size_t of_x = place(cut.x_has_blocks, r, b);
        const std::size_t of_weight = place(cut.weight_has_blocks, j, b);
        std::int64_t sum = 0;
        for (std::int64_t i = b * cut.width; i < std::min(k, (b + 1) * cut.width); ++i)
          sum += (x[static_cast<std::size_t>(r * k + i)] - (has_zeros ? x_zeros[of_x] : 0)) *
                 std::int64_t{weight.numbers[static_cast<std::size_t>(j * k + i)]};
        float term = static_cast<float>(sum);
        if (cut.x_has_blocks && cut.weight_has_blocks)
          term *= x_scales[of_x] * weight.scales[of_weight];
        else if (cut.x_has_blocks)
          term *= x_scales[of_x];
        else if (cut.weight_has_blocks)
          term *= weight.scales[of_weight];
        total = b == 0 ? term : total + term;
      }
      const float of_row = x_scales[place(false, r, 0)];
      const float of_column = weight.scales[place(false, j, 0)];
      if (!cut.x_has_blocks && !cut.weight_has_blocks)
        total *= of_row * of_column;
      else if (!cut.x_has_blocks)
        total *= of_row;
      else if (!cut.weight_has_blocks)
        total *= of_column;
      if (call.has(kCodeBias))
        total += call.input(kCodeBias).data<float>()[static_cast<std::size_t>(j)];
      y[static_cast<std::size_t>(r * n + j)] = total;
    }
}

const Register registration{Op{
    .name = "code_linear",
    .summary = "linear of numbers that are whole: exact sums of products, scaled",
    .operands = {{.name = "numbers", .role = OperandRole::Input},
                 {.name = "scales", .role = OperandRole::Scale},
                 {.name = "zeros", .role = OperandRole::Zero},
                 {.name = "codes", .role = OperandRole::Codes},
                 {.name = "local", .optional = true, .role = OperandRole::Scale},
                 {.name = "scale", .optional = true, .role = OperandRole::Scale},
                 {.name = "zero", .optional = true, .role = OperandRole::Zero},
                 {.name = "bias", .optional = true, .role = OperandRole::Bias}},
    .attributes = {{.name = "x_format",
                    .default_value = std::string(),
                    .summary = "the format that x was encoded in",
                    .required = true},
                   {.name = "format",
                    .default_value = std::string(),
                    .summary = "the format of the weight",
                    .required = true},
                   {.name = "columns",
                    .default_value = std::int64_t{0},
                    .summary = "numbers in a row of the weight",
                    .required = true}},
    .infer = infer,
    .flops =
        [](const OpCall& call) {
          return Size(2) * call.input(kXNumbers).num_elements() * call.input(kWeightCodes).axis(0);
        },
    .reference = reference,
    .is_differentiable = false,
    .is_per_token = true,
    .examples = {"code_linear(i8[T,20], f32[T,1], i32[T,1], u8[6,20], none, f32[6], none, f32[6]) "
                 "{x_format=\"int:8,dynamic\", format=\"int:8,channel\", columns=20}",
                 "code_linear(i8[B,L,64], f32[B,L,2], i32[B,L,2], u8[5,64], u8[5,2]) "
                 "{x_format=\"mxint:8\", format=\"mxint:8\", columns=64}",
                 "code_linear(i8[T,40], f32[T,1], i32[T,1], u8[3,20], none, f32[3,2]) "
                 "{x_format=\"int:8,asymmetric,dynamic\", format=\"int:4,group=32\", columns=40}"},
}};

}  // namespace
}  // namespace lathe::ops::code_linear
