#pragma once

#include <numbers>

/// How models that were trained on short sequences turn features at long ones. Host and device
/// share it.
namespace lathe::ops {

/// What the frequencies of rotary positions are divided by: `factor`, or, where `original` says how
/// many positions a model first knew, only the slow ones by it all (Llama 3).
struct RopeScaling {
  double factor = 1;
  double low_turns = 0, high_turns = 0;
  double original = 0;

  /// A pair that goes round fewer than `low_turns` times in the original positions is slowed down
  /// by the factor, one that does more than `high_turns` times is left, and between them the
  /// two are mixed in proportion.
  constexpr double apply(double frequency) const {
    if (original == 0) return frequency / factor;
    const double turns = original * frequency / (2 * std::numbers::pi);
    if (turns < low_turns) return frequency / factor;
    if (turns > high_turns) return frequency;
    const double share = (turns - low_turns) / (high_turns - low_turns);
    return (1 - share) * frequency / factor + share * frequency;
  }
};

}  // namespace lathe::ops
