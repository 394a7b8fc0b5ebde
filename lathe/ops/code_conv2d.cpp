#include <cmath>
#include <limits>

#include "lathe/ops/code_convolution.h"
#include "lathe/ops/convolution.h"
#include "lathe/ops/operand_checks.h"
#include "lathe/ops/window.h"

// code_conv2d(x, x_scale?, codes u8[O,..], local?, scale?, zero?, bias?) {x_format, format,
// columns, kernel, strides, pads, dilations}: conv2d(quantize(x), decode(codes), bias) by sums of
// products of whole numbers, where x has one scale and a filter has one:
//
//   y[n,o,i,j] = float(S) * (scale of x * scale of o) + bias[o]
//
// S is exact in 32 bits, and padding is 0 there. Every operation on floats is rounded by itself: so
// every executor gives the same bits. A row of results that reads a line of x with a NaN in it is
// NaN.
namespace lathe::ops::code_conv2d {
namespace {

Size flops(const OpCall& call) {
  return Size(2) * code_conv2d_type(call, call.input(0)).num_elements() *
         Size(call.attributes().integer("columns"));
}

void reference(const KernelCall& call) {
  const std::int64_t columns = call.attributes.integer("columns");
  const std::shared_ptr<const NumberFormat> x_format =
      parse_format(call.attributes.text("x_format"));
  const std::shared_ptr<const NumberFormat> format = parse_format(call.attributes.text("format"));
  const auto operand = [&](std::size_t i) { return call.has(i) ? &call.input(i) : nullptr; };
  const numerics::RowCodes weight =
      read_weight(*format, columns, call.input(kConvolutionCodes), operand(kConvolutionLocal),
                  operand(kConvolutionScale), operand(kConvolutionZero));
  const Tensor& x = call.input(0);
  QuantizeArgs args;
  args.columns = x.dim(3);
  args.rows = args.columns == 0 ? 0 : x.num_elements() / args.columns;
  args.x = x.data<float>().data();
  if (const Tensor* scale = operand(kXScale)) args.scales = scale->data<float>().data();
  const numerics::RowCodes codes =
      numerics::read_codes(*x_format, x_format->encode(args), args.scales, nullptr);
  const Tensor& y = call.outputs[0];
  std::vector<std::int64_t> sums(static_cast<std::size_t>(y.num_elements()), 0);
  // Lines of x that hold a NaN, in any channel.
  std::vector<bool> bad(static_cast<std::size_t>(x.dim(0) * x.dim(2)), false);
  for (std::int64_t i = 0; i < x.num_elements(); ++i)
    if (std::isnan(args.x[i]))
      bad[static_cast<std::size_t>(i / (x.dim(1) * x.dim(2) * x.dim(3)) * x.dim(2) +
                                   i / x.dim(3) % x.dim(2))] = true;
  const std::vector<std::int64_t>& kernel = call.attributes.integers("kernel");
  const Tensor shape(DType::F32,
                     {weight.rows, columns / (kernel[0] * kernel[1]), kernel[0], kernel[1]});
  for_each_product(x, shape, y, call.attributes,
                   [&](std::size_t output, std::size_t input, std::size_t tap) {
                     sums[output] += std::int64_t{weight.numbers[tap]} * codes.numbers[input];
                   });
  const Window window = read_window("code_conv2d", kernel[0], kernel[1], call.attributes, true);
  const float of_x = codes.scales.empty() ? 1.0f : codes.scales[0];
  const std::span<float> result = call.outputs[0].mutable_data<float>();
  const std::int64_t plane = y.dim(2) * y.dim(3);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const std::int64_t filter = at / plane % y.dim(1), image = at / plane / y.dim(1);
    const std::int64_t row = at / y.dim(3) % y.dim(2);
    float value = static_cast<float>(sums[i]);
    value *= of_x * weight.scales[static_cast<std::size_t>(filter)];
    if (call.has(kConvolutionBias))
      value += call.input(kConvolutionBias).data<float>()[static_cast<std::size_t>(filter)];
    for (std::int64_t tap = 0; tap < kernel[0]; ++tap) {
      const std::int64_t line = window.position(0, row, tap);
      if (line >= 0 && line < x.dim(2) && bad[static_cast<std::size_t>(image * x.dim(2) + line)])
        value = std::numeric_limits<float>::quiet_NaN();
    }
    result[i] = value;
  }
}

const Register registration{Op{
    .name = "code_conv2d",
    .summary = "conv2d of numbers that are rounded to whole ones: exact sums of products, scaled",
    .operands = code_conv2d_operands(),
    .attributes = code_conv2d_attributes(),
    .infer =
        [](const OpCall& call) { return std::vector<Type>{code_conv2d_type(call, call.input(0))}; },
    .flops = flops,
    .reference = reference,
    .is_differentiable = false,
    .examples = {"code_conv2d(f32[B,3,5,5], f32[], u8[4,27], none, f32[4], none, f32[4]) "
                 "{x_format=\"int:8\", format=\"int:8,channel\", columns=27, kernel=[3,3], "
                 "pads=[1,1,1,1]}",
                 "code_conv2d(f32[2,4,6,5], f32[], u8[5,16], none, f32[5]) "
                 "{x_format=\"int:8\", format=\"int:8,channel\", columns=16, kernel=[2,2], "
                 "strides=[2,1], dilations=[1,2]}"},
}};

}  // namespace
}  // namespace lathe::ops::code_conv2d
