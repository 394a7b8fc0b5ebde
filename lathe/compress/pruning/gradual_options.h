#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "lathe/compress/pruning/pruning_rules.h"

namespace lathe::compress {

/// Pruning while a model trains: how, and when of the run.
struct GradualOptions {
  PruningSettings settings = {};
  bool embeddings = false;      ///< tables as well
  double begin = 0, end = 0.6;  ///< shares of the run's steps
  std::int64_t every = 0;       ///< steps from one pruning to the next; 0: fifty times in all
};

/// Reads `sparsity=0.9,method=l1,scope=global,granularity=2:4,begin=0,end=0.6,every=10`, and the
/// word `embeddings`; whatever is left out keeps its default; the scope is
/// global then, but local for movement.
GradualOptions parse_gradual_options(std::string_view text);

/// The share of the final sparsity to prune to before step `done` + 1 of `num_steps`, along
/// 1 - (1 - x)^3 (Zhu and Gupta 2017): fast while much is superfluous, slowly in the end. Nothing
/// where it is not time to; 1 once, when pruning ends.
std::optional<double> gradual_share(const GradualOptions& options, std::int64_t done,
                                    std::int64_t num_steps);
/// Whether pruning has ended before step `done` + 1.
bool is_fully_pruned(const GradualOptions& options, std::int64_t done, std::int64_t num_steps);

}  // namespace lathe::compress
