#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "lathe/compress/pruning/granules.h"
#include "lathe/core/tensor.h"

namespace lathe::compress {

/// What granules are ranked against: those of their row, of their unit, or of all units.
enum class PruningScope { Row, Local, Global };
/// "row", "local", "global".
std::string_view name(PruningScope scope);
/// The scope of that name; fails with the nearest one.
PruningScope parse_pruning_scope(std::string_view text);

/// The number of `count` that a share is, rounded to the nearest.
std::int64_t share_of(double share, std::int64_t count);

/// The `count` lowest of some scores, of equal ones the first.
std::vector<bool> lowest(std::span<const double> scores, std::int64_t count);

/// The masks of all states that the units have parts of: 0 where a weight is pruned, 1 elsewhere,
/// each of its state's shape.
///
/// `scores` holds a score of each element; the lowest are pruned, ties by index. A granule's score
/// is the mean of its elements', so that granules of unlike sizes compare, and signed scores too;
/// of N:M, the mean of those that it would lose. An element whose score is -infinity is out already
/// and adds nothing: a granule of such alone comes first. What `held` has a 0 for is out already,
/// and stays out.
///
/// The number of pruned granules is round(sparsity x granules) in each unit, or in all of them
/// (global); by rows each gets its share so that the sum is that too. Of N:M, `sparsity` is of
/// elements: 0.5 makes every group of 2:4 lose two, 0.25 every other one.
State select_masks(std::span<const PruningUnit> units, const State& scores, double sparsity,
                   PruningScope scope, const State& held = {});

/// Fails unless a sparsity is one that the granularity can have.
void check_sparsity(double sparsity, const Granularity& granularity);

}  // namespace lathe::compress
