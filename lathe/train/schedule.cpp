#include "lathe/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "lathe/core/error.h"

namespace lathe::train {

Decay parse_decay(std::string_view text) {
  for (const Decay decay : {Decay::Constant, Decay::Cosine, Decay::Linear})
    if (name(decay) == text) return decay;
  throw unknown_name("schedule", text, {"constant", "cosine", "linear"});
}

std::string_view name(Decay decay) {
  switch (decay) {
    case Decay::Constant:
      return "constant";
    case Decay::Linear:
      return "linear";
    case Decay::Cosine:
      break;
  }
  return "cosine";
}

double Schedule::rate(std::int64_t step) const {
  const std::int64_t length = std::max<std::int64_t>(1, cycle_steps());
  step -= length * std::min(step / length, cycles - 1);
  const auto at = static_cast<double>(step);
  if (step < warmup_steps) return peak * at / static_cast<double>(warmup_steps);
  if (decay == Decay::Constant) return peak;
  // A warm-up of the whole cycle leaves nothing to decay over.
  const auto falling = static_cast<double>(std::max<std::int64_t>(1, length - warmup_steps));
  const double left = std::max(0.0, (static_cast<double>(length) - at) / falling);
  if (decay == Decay::Linear) return peak * left;
  return peak * 0.5 * (1 + std::cos(std::numbers::pi * (1 - left)));
}

std::int64_t warmup_steps(double share_or_steps, std::int64_t num_steps) {
  if (!(share_or_steps >= 0) || share_or_steps > 1e15)
    fail("a warm-up of {}: expected a share of the steps below 1, or a number of steps",
         share_or_steps);
  if (share_or_steps >= 1) {
    if (share_or_steps != std::floor(share_or_steps))
      fail("a warm-up of {}: expected a share of the steps below 1, or a whole number of steps",
           share_or_steps);
    return static_cast<std::int64_t>(share_or_steps);
  }
  // 0.06 * 50 is a hair above 3: that is no fourth step.
  return static_cast<std::int64_t>(
      std::ceil(share_or_steps * static_cast<double>(num_steps) - 1e-9));
}

}  // namespace lathe::train
