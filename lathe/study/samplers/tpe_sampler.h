#pragma once

#include <cstdint>
#include <optional>

#include "lathe/study/samplers/random_sampler.h"
#include "lathe/study/samplers/tpe_model.h"

namespace lathe::study {

/// The tree-structured Parzen estimator: of a few points drawn where good trials are, takes the one
/// that is likeliest to be among the good rather than among the others.
class TpeSampler final : public Sampler {
 public:
  TpeSampler(TpeOptions options, std::uint64_t seed);
  Assignment propose(const History& history, const Proposal& proposal) override;
  double suggest(const History& history, const Proposal& proposal, const Assignment& so_far,
                 std::string_view name, const Distribution& distribution) override;

 private:
  std::vector<std::vector<TpeAxis>> joint_spaces(const History& history) const;
  Assignment sample(const Proposal& proposal, const Assignment& so_far,
                    const std::vector<TpeAxis>& axes, bool is_joint);

  TpeModel model_;
  // Optuna's: one generator for the random start and one, from the same seed, for the rest.
  OptunaRandom startup_;
  NumpyRandom random_;
};

}  // namespace lathe::study
