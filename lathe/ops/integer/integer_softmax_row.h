#pragma once

#include <cstdint>
#include <span>

#include "lathe/core/op.h"

/// What integer softmax and integer attention share: docs/integer.md, "Softmax".
namespace lathe::ops {

/// From the scores to 64ths of a power of two: attributes `exponent_multiplier` and
/// `exponent_shift`.
struct ExponentScale {
  std::int64_t multiplier = 1;
  int shift = 1;
};
std::vector<AttributeSpec> with_exponent_scale(std::vector<AttributeSpec> own);
/// Fails on what no scale of scores can be.
ExponentScale exponent_scale(const AttributeReader& attributes);

/// Turns a row's scores into unnormalized weights of 15 bits in place and returns their sum. A key
/// whose `keep` is 0 weighs 0; a row that keeps none weighs all alike. `keep` may be empty.
std::int64_t exponential_row(std::span<std::int64_t> scores, std::span<const std::uint8_t> keep,
                             const ExponentScale& scale);

}  // namespace lathe::ops
