#pragma once

#include <cstdint>
#include <string_view>

namespace lathe::train {

/// What the learning rate does after the warm-up.
enum class Decay : std::uint8_t { Constant, Linear, Cosine };

/// The decay called `constant`, `linear` or `cosine`.
Decay parse_decay(std::string_view name);
std::string_view name(Decay decay);

/// The learning rate of each step of a run: a pure function of the step, so that nothing about it
/// needs saving.
struct Schedule {
  double peak = 2e-4;
  Decay decay = Decay::Linear;
  std::int64_t warmup_steps = 0;  ///< of a cycle
  std::int64_t num_steps = 1;
  std::int64_t cycles = 1;  ///< equal parts of the run, each with a warm-up and a decay of its own

  /// Steps of a cycle; the last may have fewer.
  std::int64_t cycle_steps() const { return (num_steps + cycles - 1) / cycles; }
  /// The rate of a step, counted from 0: in each cycle it rises from 0 over the warm-up, then stays
  /// (`constant`) or falls to 0, which the step after the cycle's last would have.
  double rate(std::int64_t step) const;
};

/// The steps of a warm-up given as a share of all steps (below 1, rounded up) or as a number of
/// steps (1 or more).
std::int64_t warmup_steps(double share_or_steps, std::int64_t num_steps);

}  // namespace lathe::train
