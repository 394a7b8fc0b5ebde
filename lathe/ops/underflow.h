#pragma once

#include <cmath>

/// Where results underflow to zero by definition. Arithmetic on subnormal numbers is a hundred
/// times slower on many processors; a saturated softmax and moments that only decay make them in
/// volume, where no result can notice them. The rules belong to the ops, so that every backend and
/// every instruction set has the same zeros.
namespace lathe::ops {

/// Moments of an optimizer and probabilities below the smallest normal float are 0.
inline constexpr double kSmallestNormal = 0x1p-126;
/// A score of attention further than this below the highest of its row has weight 0.
inline constexpr double kLowestAttentionScore = -44.0;
/// Gradients of scores, before a softmax, below this are 0.
inline constexpr double kLeastScoreGradient = 0x1p-100;

inline double unless_below(double least, double value) {
  return std::fabs(value) < least ? 0.0 : value;
}

}  // namespace lathe::ops
