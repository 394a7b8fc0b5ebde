#pragma once

#include <cstdint>

#include "lathe/study/math/numpy_random.h"
#include "lathe/study/samplers/sampler.h"

namespace lathe::study {

/// Optuna's random sampler: one running generator, and for each parameter the draws that Optuna 3
/// to 5 make, so that the same seed gives the same values.
class OptunaRandom {
 public:
  explicit OptunaRandom(std::uint64_t seed) : random_(seed) {}
  double draw(const Distribution& distribution);

 private:
  NumpyRandom random_;
};

/// Draws each parameter evenly and by itself. The number that a trial gets depends on the study's
/// seed, the trial's number and the parameter's name alone.
class RandomSampler final : public Sampler {
 public:
  Assignment propose(const History& history, const Proposal& proposal) override;
  double suggest(const History& history, const Proposal& proposal, const Assignment& so_far,
                 std::string_view name, const Distribution& distribution) override;
};

}  // namespace lathe::study
