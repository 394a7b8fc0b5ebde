#pragma once

#include <optional>

#include "lathe/core/graph.h"
#include "lathe/core/number_format.h"
#include "lathe/numerics/row_codes.h"

/// Products of whole numbers: what `code_linear`, its kernels and the pass that writes it share.
namespace lathe::ops {

/// The operands of `code_linear`.
enum CodeOperand : std::size_t {
  kXNumbers,
  kXScales,
  kXZeros,
  kWeightCodes,
  kWeightLocal,
  kWeightScale,
  kWeightZero,
  kCodeBias,
  kNumCodeOperands
};

/// The deepest sum of products of two numbers of 8 bits, one of them with a zero point, that 32
/// bits hold.
inline constexpr std::int64_t kDeepestCodes = 65536;

/// How the scales of a product lie: its depth is cut into `blocks` of `width` columns, each of
/// which is summed in whole numbers. Where an operand has as many scales, each multiplies a block's
/// sum; where it has one a row, that multiplies the total.
struct CodeBlocks {
  std::int64_t blocks = 1, width = 0;
  bool x_has_blocks = false, weight_has_blocks = false;
};
/// Nothing where both have blocks of different sizes, or the depth is beyond what 32 bits hold.
std::optional<CodeBlocks> code_blocks(const FormatFacts& x, const FormatFacts& weight,
                                      std::int64_t columns);

/// Whether a format has row codes that fit signed bytes when their zero points are taken off.
bool fits_signed_bytes(const NumberFormat& weight);

/// Whether a product can read x and the weight in these formats.
bool can_multiply_codes(const NumberFormat& x, const NumberFormat& weight, std::int64_t columns);

/// The weight of a `code_linear`, packed as for `decode`, with its zero points taken off. Fails
/// where a number is then beyond 8 bits.
numerics::RowCodes read_weight(const NumberFormat& format, std::int64_t columns,
                               const Tensor& codes, const Tensor* local, const Tensor* scale,
                               const Tensor* zero);

}  // namespace lathe::ops
