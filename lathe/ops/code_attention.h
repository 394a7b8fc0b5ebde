#pragma once

#include "lathe/core/number_format.h"

/// Attention on whole numbers: what `code_attention`, its kernels and the pass that writes it
/// share.
namespace lathe::ops {

/// The operands of `code_attention`; the first five are attention's.
inline constexpr std::size_t kQueryScales = 5, kKeyScales = 6, kValueScales = 7,
                             kNumCodeAttentionOperands = 8;

/// The widest head whose scores 32 bits hold.
inline constexpr std::int64_t kWidestCodeHead = 65536;

/// Whether queries, keys and values in this format can be multiplied as whole numbers: a byte each,
/// one scale a row, no zero point.
bool can_attend_codes(const NumberFormat& format);

}  // namespace lathe::ops
