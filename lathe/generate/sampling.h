#pragma once

#include <cstdint>
#include <span>

namespace lathe::generate {

/// How the next token is chosen from logits.
struct Sampling {
  double temperature = 0;  ///< what logits are divided by; 0: always the likeliest token
  std::int64_t top_k = 0;  ///< choose among so many of the likeliest; 0: among all
  double top_p = 1;        ///< choose among the fewest that are that likely together
  std::uint64_t seed = 0;
};

/// Fails on a number that means nothing, and on one that greedy choice would pass over.
void check_sampling(const Sampling& sampling);

/// What is chosen where a logit is NaN: no token is the likeliest then (as `argmax` says it). Where
/// one is drawn, also beside a logit of infinity, and where all are minus infinity.
constexpr std::int32_t kNoToken = -1;

/// The token to put at `position` of prompt number `prompt`. Random numbers depend on the seed and
/// these two alone: not on what else is generated, nor in which order. Of equally likely ones the
/// first counts.
std::int32_t choose_token(std::span<const float> logits, const Sampling& sampling,
                          std::uint32_t prompt, std::uint32_t position);

}  // namespace lathe::generate
