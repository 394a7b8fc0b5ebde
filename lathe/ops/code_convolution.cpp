#include "lathe/ops/code_convolution.h"

#include "lathe/numerics/code_layout.h"
#include "lathe/ops/convolution.h"
#include "lathe/ops/operand_checks.h"
#include "lathe/ops/quantized_operands.h"

namespace lathe::ops {

std::vector<OperandSpec> code_conv2d_operands() {
  return {{.name = "x", .role = OperandRole::Input},
          {.name = "x_scale", .optional = true, .role = OperandRole::Scale},
          {.name = "codes", .role = OperandRole::Codes},
          {.name = "local", .optional = true, .role = OperandRole::Scale},
          {.name = "scale", .optional = true, .role = OperandRole::Scale},
          {.name = "zero", .optional = true, .role = OperandRole::Zero},
          {.name = "bias", .optional = true, .role = OperandRole::Bias}};
}

std::vector<AttributeSpec> code_conv2d_attributes() {
  std::vector<AttributeSpec> attributes = conv2d_attributes();
  attributes.push_back({"x_format", std::string(), "the format that x is rounded to", true});
  attributes.push_back({"format", std::string(), "of the weight", true});
  attributes.push_back({"columns", std::int64_t{0}, "numbers in a filter", true});
  attributes.push_back(
      {"kernel", std::vector<std::int64_t>{}, "height and width of the window", true});
  return attributes;
}

Type code_conv2d_type(const OpCall& call, const Type& x) {
  const Type& codes = call.input(kConvolutionCodes);
  require_rank("code_conv2d", "codes", codes, 2);
  const std::vector<std::int64_t>& kernel = call.attributes().integers("kernel");
  const std::int64_t columns = call.attributes().integer("columns");
  if (x.dtype != DType::F32) fail("code_conv2d: x is {}, expected f32", to_text(x));
  if (kernel.size() != 2 || kernel[0] < 1 || kernel[1] < 1 || columns < 1 ||
      columns % (kernel[0] * kernel[1]) != 0)
    fail("code_conv2d: {} columns are no channels of a kernel {}", columns,
         to_text(Attribute(kernel)));
  if (call.attributes().integer("groups") != 1) fail("code_conv2d: expected one group");
  const std::shared_ptr<const NumberFormat> x_format =
      parse_format(call.attributes().text("x_format"));
  const std::shared_ptr<const NumberFormat> format = parse_format(call.attributes().text("format"));
  if (x_format == nullptr || format == nullptr || !can_convolve_codes(*x_format, *format, columns))
    fail("code_conv2d: cannot multiply {} by {} over {} columns",
         call.attributes().text("x_format"), call.attributes().text("format"), columns);
  if (codes.dtype != DType::U8 || codes.axis(1) != Size(format->code_bytes(columns)))
    fail("code_conv2d: codes are {}, but rows of {} numbers of {} take u8[..,{}]", to_text(codes),
         columns, format->facts().text, format->code_bytes(columns));
  const auto expect = [&](std::size_t operand, std::string_view name, const Type& type) {
    if (!call.has(operand) || call.input(operand).dtype != type.dtype ||
        call.input(operand).shape != type.shape)
      fail("code_conv2d: {} must be {}", name, to_text(type));
  };
  if (x_format->facts().scale_source == ScaleSource::Given)
    expect(kXScale, "x_scale", {DType::F32, {}});
  if (format->scale_bytes(columns) > 0)
    expect(kConvolutionLocal, "local", {DType::U8, local_scale_shape(*format, codes, columns)});
  if (format->facts().scale_source == ScaleSource::Given) {
    const Type weight{DType::F32, {codes.axis(0), Size(columns)}};
    expect(kConvolutionScale, "scale", {DType::F32, given_scale_shape(*format, weight)});
    if (format->facts().has_zero_point)
      expect(kConvolutionZero, "zero", {DType::F32, given_scale_shape(*format, weight)});
  }
  if (call.has(kConvolutionBias))
    require_vector("code_conv2d", "bias", call.input(kConvolutionBias), codes.axis(0));
  const Type weight{
      DType::F32,
      {codes.axis(0), Size(columns / (kernel[0] * kernel[1])), Size(kernel[0]), Size(kernel[1])}};
  return conv2d_type(x, weight, call.attributes());
}

bool can_convolve_codes(const NumberFormat& x, const NumberFormat& weight, std::int64_t columns) {
  const FormatFacts& facts = x.facts();
  if (facts.scale_source != ScaleSource::Given || facts.granularity != Granularity::Tensor ||
      facts.has_zero_point || !can_multiply_codes(x, weight, columns) ||
      numerics::code_layout(x) == numerics::CodeLayout::Unsigned)
    return false;
  const std::optional<CodeBlocks> blocks = code_blocks(facts, weight.facts(), columns);
  return blocks && blocks->blocks == 1;
}

}  // namespace lathe::ops
