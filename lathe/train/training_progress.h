#pragma once

#include <cstdint>
#include <optional>

namespace lathe::train {

/// How far a run has come: with the states' values, all that going on needs. Random numbers are
/// functions of the seed and of this, so none are kept.
struct TrainingProgress {
  std::int64_t step = 0;   ///< optimizer steps done
  std::int64_t epoch = 0;  ///< the one under way, from 0
  std::int64_t batch = 0;  ///< the next batch of that epoch
  std::int64_t tokens = 0;
  double epoch_loss_sum = 0;  ///< over the epoch so far, for its mean
  double epoch_loss_count = 0;
  std::optional<double> best_score;  ///< of the validations so far; higher is better
  std::int64_t best_step = 0;
  std::int64_t num_worse = 0;  ///< validations since the best one
  bool operator==(const TrainingProgress&) const = default;
};

}  // namespace lathe::train
