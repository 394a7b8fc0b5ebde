#pragma once

#include <vector>

#include "lathe/core/op.h"
#include "lathe/ops/code_products.h"

/// Convolutions of whole numbers: what `code_conv2d`, its lowered form and the pass that writes it
/// share.
namespace lathe::ops {

/// The operands of `code_conv2d`, behind x.
enum CodeConvolutionOperand : std::size_t {
  kXScale = 1,
  kConvolutionCodes,
  kConvolutionLocal,
  kConvolutionScale,
  kConvolutionZero,
  kConvolutionBias,
  kNumConvolutionOperands
};

std::vector<OperandSpec> code_conv2d_operands();
std::vector<AttributeSpec> code_conv2d_attributes();

/// The type of the result for images x [N,C,H,W]; fails when the operands do not fit.
Type code_conv2d_type(const OpCall& call, const Type& x);

/// Whether x and a weight of so many numbers a filter in these formats can be multiplied: x has one
/// scale and no zero point, a filter has one scale.
bool can_convolve_codes(const NumberFormat& x, const NumberFormat& weight, std::int64_t columns);

}  // namespace lathe::ops
