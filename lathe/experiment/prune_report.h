#pragma once

#include "lathe/experiment/prune.h"
#include "lathe/report/table.h"

namespace lathe::experiment {

/// A row for each weight, attention or feed-forward part that was pruned.
report::Table prune_table(const compress::PruneResult& result);

/// How much of all that counts is pruned.
struct PruneTotal {
  std::int64_t granules = 0, pruned = 0, elements = 0, zeros = 0;
};
PruneTotal prune_total(const compress::PruneResult& result);

}  // namespace lathe::experiment
