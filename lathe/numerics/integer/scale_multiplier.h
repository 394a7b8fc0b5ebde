#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lathe::numerics {

/// Multipliers and one shift that stand for ratios: ratio[i] is about multipliers[i] / 2^shift.
struct ScaleMultipliers {
  std::vector<std::int64_t> multipliers;
  int shift = 0;
};

/// The multipliers of positive ratios with at most `bits` bits. Powers of two that `bits` reaches
/// are exact, and where all ratios are the same power of two the multiplier is 1. Otherwise the
/// largest ratio takes all the bits, and none is off by more than half of 1 / 2^shift. Fails on a
/// ratio that is not positive and finite.
ScaleMultipliers multipliers_of(std::span<const double> ratios, int bits);

/// The bits that a multiplier has unless somebody asks for others: with a sign it is what a DSP
/// slice of 25 by 18 bits takes.
inline constexpr int kMultiplierBits = 17;

}  // namespace lathe::numerics
